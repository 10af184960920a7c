#include "core/time/core_time.h"

#include <sys/resource.h>
#include <time.h>

#include "core/time/stage_times.h"

namespace stoker {

namespace {

uint64_t ThreadCpuNanoseconds() {
  timespec cpu{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) != 0) return 0;
  return static_cast<uint64_t>(cpu.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(cpu.tv_nsec);
}

// Returns how often the calling thread has given up its core voluntarily.
int64_t ThreadBlocks() {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

}  // namespace

CoreClock::CoreClock()
    : blocks_(ThreadBlocks()), wall_ns_(NowNanoseconds()), cpu_ns_(ThreadCpuNanoseconds()) {}

std::optional<CoreTime> CoreClock::Read() const {
  const CoreTime time{.wall_ns = NowNanoseconds() - wall_ns_,
                      .cpu_ns = ThreadCpuNanoseconds() - cpu_ns_};
  return ThreadBlocks() == blocks_ ? std::optional(time) : std::nullopt;
}

}  // namespace stoker
