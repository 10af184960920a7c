#include "engine/metrics/stats.h"

#include <algorithm>
#include <utility>

namespace stoker {

namespace {

// Returns the last decisions of both, ordered by time.
std::vector<TunerDecision> Together(const std::vector<TunerDecision>& a,
                                    const std::vector<TunerDecision>& b) {
  std::vector<TunerDecision> both(a.size() + b.size());
  std::ranges::merge(a, b, both.begin(), {}, &TunerDecision::at_ns, &TunerDecision::at_ns);
  const size_t most = std::max(a.size(), b.size());
  both.erase(both.begin(), both.end() - static_cast<ptrdiff_t>(most));
  return both;
}

}  // namespace

void AddStats(LoaderStats& all, const LoaderStats& one) {
  LoaderStats sum = one;
  sum.samples += all.samples;
  sum.bytes_read += all.bytes_read;
  sum.batches += all.batches;
  sum.stages += all.stages;
  sum.map_calls += all.map_calls;
  sum.work_ns += all.work_ns;
  sum.clocked += all.clocked;
  sum.wait_ns += all.wait_ns;
  sum.waited += all.waited;
  sum.consumer_ns += all.consumer_ns;
  sum.stalls += all.stalls;
  if (sum.stall.empty()) sum.stall = all.stall;
  sum.worker_busy_ns.resize(std::max(all.worker_busy_ns.size(), one.worker_busy_ns.size()));
  for (size_t i = 0; i < all.worker_busy_ns.size(); ++i) {
    sum.worker_busy_ns[i] += all.worker_busy_ns[i];
  }
  sum.decoded += all.decoded;
  sum.decisions = Together(all.decisions, one.decisions);
  sum.decisions_made += all.decisions_made;
  sum.pinned_bytes += all.pinned_bytes;
  sum.pinning_ns += all.pinning_ns;
  all = std::move(sum);
}

}  // namespace stoker
