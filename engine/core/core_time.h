// How much of its time a thread has a core: the rest of it other threads had it, or a limit.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "engine/core/stage_times.h"

namespace stoker {

// CPU time of the calling thread, in nanoseconds. A system call.
inline uint64_t ThreadCpuNanoseconds() {
  timespec cpu{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) != 0) return 0;
  return static_cast<uint64_t>(cpu.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(cpu.tv_nsec);
}

// Of the stretches that were looked at.
struct CoreTime {
  uint64_t wall_ns = 0;
  uint64_t cpu_ns = 0;

  // 0 to 1; 1 where nothing is known.
  double share() const {
    if (wall_ns == 0) return 1;
    return std::min(1.0, static_cast<double>(cpu_ns) / static_cast<double>(wall_ns));
  }
  CoreTime& operator+=(const CoreTime& other) {
    wall_ns += other.wall_ns;
    cpu_ns += other.cpu_ns;
    return *this;
  }
};

// Of the calling thread, since it was made.
class CoreClock {
 public:
  CoreTime Read() const {
    return {.wall_ns = NowNanoseconds() - wall_ns_, .cpu_ns = ThreadCpuNanoseconds() - cpu_ns_};
  }

 private:
  uint64_t wall_ns_ = NowNanoseconds();
  uint64_t cpu_ns_ = ThreadCpuNanoseconds();
};

}  // namespace stoker
