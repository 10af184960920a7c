#include "engine/metrics/critical_path.h"

#include <algorithm>

namespace stoker {

namespace {

// Walks back in time from the end of a wait, so that each segment can be added to its cause.
class BackwardWalk {
 public:
  BackwardWalk(uint64_t from_ns, uint64_t to_ns)
      : from_ns_(from_ns), at_ns_(std::max(from_ns, to_ns)) {}

  // Moves back to `since_ns` and returns the time passed over.
  uint64_t To(uint64_t since_ns) {
    const uint64_t before = at_ns_;
    at_ns_ = std::clamp(since_ns, from_ns_, at_ns_);
    return before - at_ns_;
  }
  uint64_t at_ns() const { return at_ns_; }

 private:
  const uint64_t from_ns_;
  uint64_t at_ns_;
};

// amount × part / whole, at most `amount`.
uint64_t Share(uint64_t amount, uint64_t part, uint64_t whole) {
  if (part >= whole) return amount;
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  return std::min(amount, static_cast<uint64_t>(share * static_cast<double>(amount)));
}

void AddSegment(const SamplePath::Segment& segment, uint64_t until_ns, BackwardWalk& walk,
                WaitCauses& causes) {
  const uint64_t amount = walk.To(segment.from_ns);
  if (amount == 0) return;
  const uint64_t decode = Share(amount, segment.decode_ns, until_ns - segment.from_ns);
  causes.decode_ns += decode;
  causes.storage_ns += amount - decode;
}

}  // namespace

WaitCauses CausesOf(const CriticalPath& path, uint64_t asked_ns, uint64_t taken_ns) {
  WaitCauses causes;
  const SampleTimes& last = path.last_row.times();
  const uint64_t opened_ns = std::clamp(path.opened_ns, asked_ns, std::max(asked_ns, taken_ns));
  BackwardWalk walk(opened_ns, taken_ns);
  causes.other_ns = opened_ns - asked_ns + walk.To(path.complete_ns);
  if (path.whole_ns != 0) causes.map_ns = walk.To(path.whole_ns);
  if (last.claimed_ns == 0 || last.done_ns == 0) {
    causes.other_ns += walk.To(0);
    return causes;
  }
  causes.decode_ns = walk.To(last.workers_since_ns);
  causes.storage_ns = walk.To(last.claimed_ns);
  uint64_t until_ns = path.last_row.before_ns();
  if (until_ns != 0)
    (last.behind_workers ? causes.decode_ns : causes.storage_ns) += walk.To(until_ns);
  for (const SamplePath::Segment& segment : path.last_row.before()) {
    if (segment.samples == 0) break;
    AddSegment(segment, until_ns, walk, causes);
    until_ns = segment.from_ns;
  }
  const uint64_t known = causes.decode_ns + causes.storage_ns;
  const uint64_t unknown = walk.To(0);
  if (known == 0) {
    causes.other_ns += unknown;
  } else {
    const uint64_t decode = Share(unknown, causes.decode_ns, known);
    causes.decode_ns += decode;
    causes.storage_ns += unknown - decode;
  }
  return causes;
}

}  // namespace stoker
