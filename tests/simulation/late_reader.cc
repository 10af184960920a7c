#include "tests/simulation/late_reader.h"

#include <algorithm>

#include "tests/simulation/scheduler.h"
#include "tests/simulation/simulated_source.h"

namespace stoker::testing {

size_t LateReader::Submit(std::span<ReadRequest* const> requests) {
  SimulateWork(blocks_ && !requests.empty() ? longest_ns_ + 1 : requests.size() * 1000);
  return reader_.Submit(requests);
}

// A wait ends after 50 ms, finished or not, as Reader says.
size_t LateReader::Reap(std::span<ReadRequest*> done, bool wait) {
  constexpr uint64_t kPatience = 50'000'000;
  if (!wait || reader_.in_flight() == 0) return reader_.Reap(done, false);
  SimulateWork(std::min(longest_ns_, kPatience) + 1);
  const bool too_long =
      longest_ns_ > kPatience && Scheduler::Running()->Below(longest_ns_) > kPatience;
  return too_long ? 0 : reader_.Reap(done, true);
}

}  // namespace stoker::testing
