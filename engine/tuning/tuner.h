// Chooses how deep to prefetch, how many workers decode and how many reads are in flight, for one
// loader.
//
// A model, not a search: from the cost of the last batches it computes how long the consumer would
// have waited with other settings (tuner_model.h), and chooses the smallest settings that are
// within about `wait_target` of the best. It grows at once and shrinks late.
//
// Pure arithmetic on its inputs: no thread, clock, randomness, or allocation after construction, so
// that a simulator can run it unchanged. One thread at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "engine/tuning/batch_record.h"
#include "engine/tuning/tuner_decision.h"

namespace stoker {

struct TunerSettings {
  int depth = 0;    // how many batches may be in production (opened, not delivered)
  int workers = 0;  // that decode at a time
  int reads = 0;    // in flight at a time
  friend bool operator==(const TunerSettings&, const TunerSettings&) = default;
};

// The first depth, if it is tuned: one batch is made while another is consumed.
inline constexpr int kFirstDepth = 2;

// The most that may be chosen. It changes with other loaders' needs and with free memory.
using TunerLimits = TunerSettings;

// How many samples may be in use: enough that each worker has two in progress and one waiting while
// all reads are in flight. Reading goes on when half of them are free, and a reader thread that
// wakes up then may wait for a core until the scheduler's next tick, some 4 ms. So at least 32 are
// allowed in addition to the workers': with 8, two workers ran out of photographs before the tick.
constexpr int RowsAhead(int reads, int workers) { return std::max(reads, 32) + 3 * workers; }

struct TunerOptions {
  TunerSettings fixed;         // set by the user; 0 means tuned
  double wait_target = 0.005;  // of the time
};

class Tuner {
 public:
  // Starts with the fixed settings, all workers, and small values for the rest.
  Tuner(const TunerOptions& options, const TunerLimits& limits);
  ~Tuner();

  // Returns what changed with this batch, often nothing; valid until the next call. Batches come in
  // the order of delivery. A pause of the consumer (a validation, a Seek) buys no memory and frees
  // no worker unless it recurs.
  std::span<const TunerDecision> Observe(const BatchRecord& batch);

  // The limits hold from now on; settings above them follow at once, fixed ones stay as they are.
  std::span<const TunerDecision> SetLimits(const TunerLimits& limits, uint64_t now_ns);

  const TunerSettings& settings() const;

  // The settings that it would choose within `most`, regardless of the limits. This decides the
  // workers and memory of loaders that share a Runtime.
  TunerSettings needs(const TunerLimits& most) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
