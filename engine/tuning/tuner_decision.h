// What a tuner decided, and why.
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

// One change, and why.
struct TunerDecision {
  enum class What : uint8_t { kDepth, kWorkers, kReads };
  enum class Because : uint8_t {
    kWaits,         // the consumer waits more than it must
    kNoWait,        // fewer do as well
    kCannotKeepUp,  // production is the limit whatever is chosen: as many as are of use
    kLatency,       // reads take long one by one: more at a time bring more
    kSaturated,     // more at a time only make each of them slower
    kMost,          // production is the limit: as many as there may be
    kTried,         // for a while, to see what it does: the model does not know
    kTakenBack,     // that is over, and was of no use
    kLimit,         // no more is allowed now: others need it, or memory is short
  };
  What what = What::kDepth;
  Because because = Because::kWaits;
  int from = 0;
  int to = 0;
  uint64_t at_ns = 0;          // taken_ns of the batch that it follows
  double waited = 0;           // share of the last batches' time that was waited
  double expected = 0;         // with the new settings
  double work_ms = 0;          // per batch, of workers, median
  double gap_ms = 0;           // per batch, of the consumer, median
  double read_latency_ms = 0;  // of one read, mean
};

// "depth 4 → 7: the consumer waited 3.1% of the time, and 0.2% with 7 (a batch takes 41 ms of
// workers' time, a step 18 ms)".
std::string TextOf(const TunerDecision& decision);

}  // namespace stoker
