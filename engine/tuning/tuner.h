// Tuner: how deep to prefetch, how many workers and how many reads at a time. For one loader.
//
// A model, not a search. It keeps what the last batches cost, each of them: the consumer's time
// between two calls, the workers' time, the longest sample, the reads. For any settings it can then
// say what the consumer would have waited for these very batches: three servers in a row (storage,
// workers, consumer) with `depth` places between them, followed batch by batch (the recursion of
// Lindley 1952 with a finite buffer). It chooses the smallest settings whose wait is within
// `wait_target` of the least that can be had, or nearly twice that where it saves much memory.
//
// Pure arithmetic on what it is told: no thread, no clock, no randomness, no allocation after its
// making. The simulator (bench/tuner_sim) runs this very class. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/loader/batch_record.h"
#include "engine/tuning/tuner_decision.h"

namespace stoker {

struct TunerSettings {
  int depth = 0;    // batches in production and not yet delivered
  int workers = 0;  // that decode at a time
  int reads = 0;    // in flight at a time
  friend bool operator==(const TunerSettings&, const TunerSettings&) = default;
};

struct TunerOptions {
  TunerSettings fixed;         // what a user has set; 0: to be chosen
  double wait_target = 0.005;  // of the time
};

// What may be chosen at most; changes with what others need, and with the memory that is free.
struct TunerLimits {
  int depth = 1;
  int workers = 1;
  int reads = 1;
  friend bool operator==(const TunerLimits&, const TunerLimits&) = default;
};

class Tuner {
 public:
  // Starts with what is fixed, all the workers there are, and small for the rest.
  Tuner(const TunerOptions& options, const TunerLimits& limits);
  ~Tuner();

  // What changed with this batch, often nothing; valid until the next call. Batches come in the
  // order of delivery. A pause between two (an epoch's end, a Seek) is the consumer's time as any
  // other; the four longest, and any longer than 64 batches (a validation, an hour), are cut to the
  // next longest: a pause buys no memory, and frees no worker.
  std::span<const TunerDecision> Observe(const BatchRecord& batch);

  // From now on; the settings follow at once where they are above. Fixed settings stay as they are.
  std::span<const TunerDecision> SetLimits(const TunerLimits& limits, uint64_t now_ns);

  const TunerSettings& settings() const;

  // What it would choose if nobody else were there: the smallest that does, within what the machine
  // has (`most`), whatever the limits are. What loaders that share a Runtime divide by.
  TunerSettings needs(const TunerLimits& most) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
