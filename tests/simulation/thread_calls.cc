// The functions of pthreads, clocks and system calls by which a program notices that it is
// simulated. While a simulation runs they belong to its Scheduler; otherwise they are glibc's.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>

#include "tests/simulation/arena.h"
#include "tests/simulation/scheduler.h"

using ::stoker::testing::Arena;
using ::stoker::testing::Scheduler;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kNameBase = 1 << 20;  // of the numbers of simulated threads: beyond the system's
constexpr clockid_t kCpuClockBase = 1 << 20;
constexpr uint64_t kYear2026 = 1'767'225'600;  // in seconds since 1970

// glibc's own function of that name.
template <typename Function>
Function* System(Function* /*ours*/, const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

uint64_t Nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

timespec TimeOf(uint64_t ns) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(ns / kSecond);
  time.tv_nsec = static_cast<long>(ns % kSecond);
  return time;
}

uint64_t OnMonotonicClock(clockid_t clock, const timespec& time) {
  const uint64_t ns = Nanoseconds(time);
  if (clock != CLOCK_REALTIME) return ns;
  return ns < kYear2026 * kSecond ? 0 : ns - kYear2026 * kSecond;
}

void CheckMemory(const void* address) {
  if (!Arena::IsLive(address)) {
    Scheduler::FailMemory("a mutex or condition in freed memory is used", address);
  }
}

uint32_t NumberOf(pthread_t thread) { return static_cast<uint32_t>(thread - kNameBase); }

}  // namespace

extern "C" {

// ---- Threads

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_create, "pthread_create");
    return system(thread, attributes, run, argument);
  }
  *thread = kNameBase + running->Start(run, argument);
  running->Point();
  return 0;
}

int pthread_join(pthread_t thread, void** result) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_join, "pthread_join");
    return system(thread, result);
  }
  void* const returned = running->Join(NumberOf(thread));
  if (result != nullptr) *result = returned;
  return 0;
}

pthread_t pthread_self() {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_self, "pthread_self");
    return system();
  }
  return kNameBase + running->self();
}

int pthread_setname_np(pthread_t thread, const char* name) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_setname_np, "pthread_setname_np");
    return system(thread, name);
  }
  running->Name(name);
  return 0;
}

int sched_yield() {
  if (Scheduler* const running = Scheduler::Running()) running->Point();
  return 0;
}

int sched_getscheduler(pid_t /*process*/) { return SCHED_BATCH; }

int getrusage(__rusage_who_t who, rusage* usage) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&getrusage, "getrusage");
    return system(who, usage);
  }
  *usage = {};
  usage->ru_nvcsw = running->blocks();
  return 0;
}

// ---- Mutexes and conditions

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_mutex_lock, "pthread_mutex_lock");
    return system(mutex);
  }
  CheckMemory(mutex);
  running->ComeTo(__builtin_return_address(0));
  running->Lock(mutex);
  return 0;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_mutex_trylock, "pthread_mutex_trylock");
    return system(mutex);
  }
  CheckMemory(mutex);
  running->ComeTo(__builtin_return_address(0));
  return running->TryLock(mutex) ? 0 : EBUSY;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_mutex_unlock, "pthread_mutex_unlock");
    return system(mutex);
  }
  CheckMemory(mutex);
  running->ComeTo(__builtin_return_address(0));
  running->Unlock(mutex);
  return 0;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_cond_wait, "pthread_cond_wait");
    return system(condition, mutex);
  }
  CheckMemory(condition);
  running->ComeTo(__builtin_return_address(0));
  running->Wait(condition, mutex, Scheduler::kNever);
  CheckMemory(condition);
  return 0;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_cond_clockwait, "pthread_cond_clockwait");
    return system(condition, mutex, clock, until);
  }
  CheckMemory(condition);
  running->ComeTo(__builtin_return_address(0));
  const bool in_time = running->Wait(condition, mutex, OnMonotonicClock(clock, *until));
  CheckMemory(condition);
  return in_time ? 0 : ETIMEDOUT;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  if (Scheduler::Running() != nullptr) {
    return pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, until);
  }
  static const auto system = System(&pthread_cond_timedwait, "pthread_cond_timedwait");
  return system(condition, mutex, until);
}

int pthread_cond_signal(pthread_cond_t* condition) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_cond_signal, "pthread_cond_signal");
    return system(condition);
  }
  CheckMemory(condition);
  running->ComeTo(__builtin_return_address(0));
  running->Notify(condition, /*all=*/false);
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_cond_broadcast, "pthread_cond_broadcast");
    return system(condition);
  }
  CheckMemory(condition);
  running->ComeTo(__builtin_return_address(0));
  running->Notify(condition, /*all=*/true);
  return 0;
}

int pthread_cond_destroy(pthread_cond_t* condition) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&pthread_cond_destroy, "pthread_cond_destroy");
    return system(condition);
  }
  running->CheckNobodyWaits(condition);
  return 0;
}

// ---- Clocks

int clock_gettime(clockid_t clock, timespec* time) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&clock_gettime, "clock_gettime");
    return system(clock, time);
  }
  if (clock == CLOCK_THREAD_CPUTIME_ID) {
    *time = TimeOf(running->cpu_ns(running->self()));
  } else if (clock >= kCpuClockBase) {
    *time = TimeOf(running->cpu_ns(static_cast<uint32_t>(clock - kCpuClockBase)));
  } else {
    running->PassTime();
    *time = TimeOf(running->now_ns() + (clock == CLOCK_REALTIME ? kYear2026 * kSecond : 0));
  }
  return 0;
}

int pthread_getcpuclockid(pthread_t thread, clockid_t* clock) {
  if (Scheduler::Running() == nullptr) {
    static const auto system = System(&pthread_getcpuclockid, "pthread_getcpuclockid");
    return system(thread, clock);
  }
  *clock = kCpuClockBase + static_cast<clockid_t>(NumberOf(thread));
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) {
    static const auto system = System(&clock_nanosleep, "clock_nanosleep");
    return system(clock, flags, time, left);
  }
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  running->SleepUntil(absolute ? OnMonotonicClock(clock, *time)
                               : running->now_ns() + Nanoseconds(*time));
  return 0;
}

int nanosleep(const timespec* time, timespec* left) {
  return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
}

int usleep(useconds_t microseconds) {
  const timespec time = TimeOf(uint64_t{microseconds} * 1000);
  return nanosleep(&time, nullptr);
}

// ---- System calls by number: a thread's own number, and whether a thread still exists

long syscall(long number, ...) {
  std::va_list list;
  va_start(list, number);
  long given[6];
  for (long& argument : given) argument = va_arg(list, long);
  va_end(list);
  Scheduler* const running = Scheduler::Running();
  if (running != nullptr && number == SYS_gettid) return static_cast<long>(running->self());
  if (running != nullptr && number == SYS_tgkill) {
    if (!running->HasEnded(static_cast<uint32_t>(given[1]))) return 0;
    errno = ESRCH;
    return -1;
  }
  static const auto system = System(&syscall, "syscall");
  return system(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

}  // extern "C"
