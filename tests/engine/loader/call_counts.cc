#include "tests/engine/loader/call_counts.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <string_view>

// glibc's own names for the functions replaced below.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t n, size_t bytes);
void* __libc_realloc(void* p, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
// NOLINTEND(readability-identifier-naming)
}

namespace {

constexpr size_t kLibraries = 32;

struct Library {
  std::atomic<const char*> path{nullptr};
  std::atomic<uint64_t> allocations{0};
  std::atomic<uint64_t> locks{0};
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> waits{0};
  std::atomic<uint64_t> maps{0};
};

std::array<Library, kLibraries> libraries;
std::atomic<bool> counting{false};
thread_local bool inside = false;  // the counting's own calls do not count

bool IsRuntime(const char* path) {
  const std::string_view name = path;
  const auto is = [name](const char* part) { return name.find(part) != std::string_view::npos; };
  return is("/libc.so") || is("/libstdc++.so") || is("/libgcc_s.so") || is("/ld-linux");
}

// The first frame outside this file's functions and the C and C++ runtimes.
const char* Caller() {
  std::array<void*, 24> frames{};
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 3; i < depth; ++i) {  // backtrace, Caller, Count and the replaced function
    Dl_info info{};
    if (dladdr(frames[static_cast<size_t>(i)], &info) == 0 || info.dli_fname == nullptr) continue;
    if (!IsRuntime(info.dli_fname)) return info.dli_fname;
  }
  return "unknown";
}

void Count(std::atomic<uint64_t> Library::*what) {
  if (!counting.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  const char* caller = Caller();
  for (Library& library : libraries) {
    const char* path = library.path.load(std::memory_order_acquire);
    if (path == nullptr && library.path.compare_exchange_strong(path, caller)) path = caller;
    if (path == nullptr || std::strcmp(path, caller) != 0) continue;
    (library.*what).fetch_add(1, std::memory_order_relaxed);
    break;
  }
  inside = false;
}

// Only with these flags is open given a mode.
bool MayCreate(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

// Returns the function of that name that would have run if this program had not replaced it.
template <typename Function>
class Next {
 public:
  explicit Next(const char* name)
      : function_(reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name))) {}
  Function* operator()() const { return function_; }

 private:
  Function* const function_;
};

}  // namespace

extern "C" {

void* malloc(size_t bytes) {
  Count(&Library::allocations);
  return __libc_malloc(bytes);
}

void* calloc(size_t n, size_t bytes) {
  Count(&Library::allocations);
  return __libc_calloc(n, bytes);
}

void* realloc(void* p, size_t bytes) {
  Count(&Library::allocations);
  return __libc_realloc(p, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  Count(&Library::allocations);
  return __libc_memalign(alignment, bytes);
}

void* memalign(size_t alignment, size_t bytes) {  // NOLINT: libc's name
  Count(&Library::allocations);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** p, size_t alignment, size_t bytes) {
  Count(&Library::allocations);
  *p = __libc_memalign(alignment, bytes);
  return *p == nullptr ? 12 : 0;  // ENOMEM
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static Next<int(pthread_mutex_t*)> next("pthread_mutex_lock");
  Count(&Library::locks);
  return next()(mutex);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static Next<int(pthread_cond_t*, pthread_mutex_t*)> next("pthread_cond_wait");
  Count(&Library::waits);
  return next()(condition, mutex);
}

int pthread_cond_signal(pthread_cond_t* condition) {
  static Next<int(pthread_cond_t*)> next("pthread_cond_signal");
  Count(&Library::waits);
  return next()(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  static Next<int(pthread_cond_t*)> next("pthread_cond_broadcast");
  Count(&Library::waits);
  return next()(condition);
}

int sched_yield() {
  static Next<int()> next("sched_yield");
  Count(&Library::waits);
  return next()();
}

int nanosleep(const timespec* time, timespec* left) {
  static Next<int(const timespec*, timespec*)> next("nanosleep");
  Count(&Library::waits);
  return next()(time, left);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  static Next<int(clockid_t, int, const timespec*, timespec*)> next("clock_nanosleep");
  Count(&Library::waits);
  return next()(clock, flags, time, left);
}

long syscall(long number, ...) {  // std::atomic's wait and notify come this way
  static Next<long(long, long, long, long, long, long, long)> next("syscall");
  va_list list;
  va_start(list, number);
  std::array<long, 6> a{};
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  Count(&Library::waits);
  return next()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int open(const char* path, int flags, ...) {
  static Next<int(const char*, int, ...)> next("open");
  va_list list;
  va_start(list, flags);
  const mode_t mode = MayCreate(flags) ? va_arg(list, mode_t) : 0;
  va_end(list);
  Count(&Library::reads);
  return next()(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  static Next<int(int, const char*, int, ...)> next("openat");
  va_list list;
  va_start(list, flags);
  const mode_t mode = MayCreate(flags) ? va_arg(list, mode_t) : 0;
  va_end(list);
  Count(&Library::reads);
  return next()(folder, path, flags, mode);
}

int fstat(int descriptor, struct stat* info) noexcept {
  static Next<int(int, struct stat*)> next("fstat");
  Count(&Library::reads);
  return next()(descriptor, info);
}

int close(int descriptor) {
  static Next<int(int)> next("close");
  Count(&Library::reads);
  return next()(descriptor);
}

ssize_t read(int descriptor, void* bytes, size_t count) {
  static Next<ssize_t(int, void*, size_t)> next("read");
  Count(&Library::reads);
  return next()(descriptor, bytes, count);
}

ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  static Next<ssize_t(int, void*, size_t, off_t)> next("pread");
  Count(&Library::reads);
  return next()(descriptor, bytes, count, offset);
}

void* mmap(void* at, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
  static Next<void*(void*, size_t, int, int, int, off_t)> next("mmap");
  Count(&Library::maps);
  return next()(at, bytes, protection, flags, descriptor, offset);
}

int munmap(void* at, size_t bytes) {
  static Next<int(void*, size_t)> next("munmap");
  Count(&Library::maps);
  return next()(at, bytes);
}

int madvise(void* at, size_t bytes, int advice) {
  static Next<int(void*, size_t, int)> next("madvise");
  Count(&Library::maps);
  return next()(at, bytes, advice);
}

}  // extern "C"

namespace stoker::testing {

void StartCounting() {
  std::array<void*, 4> warm{};
  backtrace(warm.data(), static_cast<int>(warm.size()));  // its first call allocates
  for (Library& library : libraries) {
    library.allocations = 0;
    library.locks = 0;
    library.reads = 0;
    library.waits = 0;
    library.maps = 0;
  }
  counting = true;
}

std::map<std::string, Calls> StopCounting() {
  counting = false;
  std::map<std::string, Calls> calls;
  for (Library& library : libraries) {
    const char* path = library.path;
    if (path == nullptr) break;
    std::string name = path;
    name = name.substr(name.find_last_of('/') + 1);
    if (const size_t so = name.find(".so"); so != std::string::npos) name.resize(so + 3);
    calls[name].allocations += library.allocations;
    calls[name].locks += library.locks;
    calls[name].reads += library.reads;
    calls[name].waits += library.waits;
    calls[name].maps += library.maps;
  }
  return calls;
}

}  // namespace stoker::testing
