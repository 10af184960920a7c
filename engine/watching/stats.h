// What a loader has done so far.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/core_time.h"
#include "core/stage_times.h"
#include "engine/tuning/tuner_decision.h"
#include "engine/watching/wait_causes.h"
#include "transforms/jpeg/paths.h"

namespace stoker {

// A snapshot; counters run from the loader's opening.
struct LoaderStats {
  uint64_t samples = 0;  // worked on, good or bad
  uint64_t bytes_read = 0;
  uint64_t batches = 0;      // delivered
  StageTimes stages;         // summed over workers
  uint64_t work_ns = 0;      // workers' time on samples, decode and resize included
  CoreTime clocked;          // some stretches of that: how much of it workers had a core
  uint64_t read_cpu_ns = 0;  // CPU of the Runtime's reader threads, for all loaders together
  uint64_t wait_ns = 0;      // Next() waited for a batch
  WaitCauses waited;         // the same by cause; what is waited for now is not in it yet
  uint64_t consumer_ns = 0;  // between having a batch and asking for the next one
  std::vector<uint64_t> worker_busy_ns;  // by worker: of work_ns
  DecodePaths decoded;  // by our JPEG decoder, by an index, or by libjpeg-turbo and why

  // The settings now, and what became of them: the last decisions, newest last.
  int depth = 0;    // batches in production, at most
  int workers = 0;  // that decode at a time, at most
  int reads = 0;    // in flight at a time, at most; 0: nothing is read
  bool depth_given = false, workers_given = false, reads_given = false;  // by a user: not tuned
  std::vector<TunerDecision> decisions;
  uint64_t decisions_made = 0;

  int lent_batches = 0;       // held by the caller now: slots, by a batch or by an owner
  uint64_t lent_bytes = 0;    // their memory (small columns kept by themselves do not count)
  uint64_t slot_bytes = 0;    // one batch's memory
  uint64_t pinned_bytes = 0;  // of slots, for a device
  uint64_t memory_used = 0;   // of the Runtime's budget, now
  uint64_t memory_peak = 0;   // at most so far
  uint64_t memory_budget = 0;

  int threads = 0;              // workers there are
  int threads_seen = 0;         // distinct threads that have worked
  std::string executor;         // "tbb", "threads", "shuffled"
  std::string executor_reason;  // why it is not as asked for: few threads, a fork; empty: it is
  std::string reader;           // "uring", "pread"; "none" for samples in memory
  std::string reader_reason;
  std::string plan;  // what the transforms were compiled to
};

// Adds what another loader of the same Runtime did; what is the Runtime's, and the settings now,
// are taken from `one`. Of the decisions as many are kept as the one that has more of them has.
void AddStats(LoaderStats& all, const LoaderStats& one);

}  // namespace stoker
