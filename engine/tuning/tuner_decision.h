// One change of a setting by the tuner, and the reason for it; or an increase for which there was
// no room: its old and new values are equal.
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

struct TunerDecision {
  enum class Setting : uint8_t { kDepth, kWorkers, kReads };
  enum class Reason : uint8_t {
    kWaits,   // the consumer would wait less with the new setting
    kNoWait,  // a smaller setting is as good
    kLimit,   // no more is allowed now: other loaders need it, or memory is short
  };
  Setting setting = Setting::kDepth;
  Reason reason = Reason::kWaits;
  int from = 0;
  int to = 0;
  uint64_t at_ns = 0;          // taken_ns of the batch that it follows
  double waited = 0;           // share of the remembered time that the consumer waited
  double expected = 0;         // the same with the new settings, as the model predicts it
  double work_ms = 0;          // workers' time for a batch, mean
  double gap_ms = 0;           // the consumer's time for a batch, mean
  double read_latency_ms = 0;  // of one read, mean; 0 means nothing was read
};

// "depth 4 → 7: the consumer waited 3.1% of the time, and would wait 0.2% with 7 (a batch takes
// 41 ms of workers' time, a step 18 ms, a read 0.3 ms)".
std::string TextOf(const TunerDecision& decision);

}  // namespace stoker
