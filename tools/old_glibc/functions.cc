// Functions of glibc 2.29 and newer that compiled code calls, for programs that run with glibc 2.28.
// tools/old_libraries.py compiles them, hidden: each library of a wheel has those that it calls.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

namespace {

// glibc's own functions; null before 2.30. dlsym does not find those below, which are hidden.
const auto own_cond_clockwait = reinterpret_cast<decltype(&pthread_cond_clockwait)>(
    dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
const auto own_mutex_clocklock = reinterpret_cast<decltype(&pthread_mutex_clocklock)>(
    dlsym(RTLD_DEFAULT, "pthread_mutex_clocklock"));

// Returns the time on the wall clock when the other clock will be at `time`. If the wall clock is
// set back during a wait, the wait takes longer, as any wait of libstdc++ does with glibc 2.28.
// The condition must have the default clock, as those of std::condition_variable.
timespec OnWallClock(clockid_t clock, const timespec& time) {
  constexpr int64_t kSecond = 1'000'000'000;
  timespec now;
  timespec wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  const int64_t nanoseconds = wall.tv_nsec + time.tv_nsec - now.tv_nsec + kSecond;
  return {wall.tv_sec + time.tv_sec - now.tv_sec + nanoseconds / kSecond - 1,
          nanoseconds % kSecond};
}

}  // namespace

extern "C" {

char __libc_single_threaded = 0;  // false: std::shared_ptr counts by atomic operations

pid_t gettid() noexcept { return syscall(SYS_gettid); }

// On 64-bit processors the kernel's structure is glibc's.
int stat(const char* path, struct stat* info) noexcept {
  return syscall(SYS_newfstatat, AT_FDCWD, path, info, 0);
}
int lstat(const char* path, struct stat* info) noexcept {
  return syscall(SYS_newfstatat, AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}
int fstatat(int folder, const char* path, struct stat* info, int flags) noexcept {
  return syscall(SYS_newfstatat, folder, path, info, flags);
}
int fstat(int file, struct stat* info) noexcept { return syscall(SYS_fstat, file, info); }
int fstat64(int file, struct stat64* info) noexcept { return syscall(SYS_fstat, file, info); }

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* time) {
  if (own_cond_clockwait) return own_cond_clockwait(condition, mutex, clock, time);
  const timespec wall = OnWallClock(clock, *time);
  return pthread_cond_timedwait(condition, mutex, &wall);
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                            const timespec* time) noexcept {
  if (own_mutex_clocklock) return own_mutex_clocklock(mutex, clock, time);
  const timespec wall = OnWallClock(clock, *time);
  return pthread_mutex_timedlock(mutex, &wall);
}

}  // extern "C"
