#include "engine/metrics/stall_watch.h"

#include <algorithm>
#include <utility>

#include "engine/metrics/stats.h"

namespace stoker {

bool StallWatch::Poll(uint64_t now_ns, uint64_t state) {
  constexpr uint64_t kMostBetweenPolls = 1'000'000'000;
  if (patience_ns_ == 0) return false;
  const std::optional<Observation> before = std::exchange(last_, Observation{state, now_ns});
  if (!before || before->state != state) {
    still_ns_ = 0;
    reported_ = false;
    return false;
  }
  still_ns_ += std::min(now_ns - before->at_ns, kMostBetweenPolls);
  return still_ns_ >= patience_ns_ && !std::exchange(reported_, true);
}

void StallWatch::Report(std::string what) {
  const std::lock_guard lock(mutex_);
  ++stalls_;
  stall_ = std::move(what);
}

void StallWatch::AddTo(LoaderStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.stalls += stalls_;
  stats.stall = stall_;
}

}  // namespace stoker
