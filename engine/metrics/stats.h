// LoaderStats: the statistics of a loader, advice from them, and their text for Prometheus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/sample_fault.h"
#include "core/time/stage_times.h"
#include "engine/tuning/tuner_decision.h"
#include "transforms/decode/decoding.h"

namespace stoker {

// Counts the work of the loader's cache (engine/production/samples/sample_cache.h) since the loader
// was opened.
struct CacheCounts {
  std::string place;                  // "ram:8GiB"; empty means there is none
  uint64_t hits = 0, hit_bytes = 0;   // samples that came from the cache
  uint64_t misses = 0;                // samples that it did not have, or that were damaged
  uint64_t kept = 0, kept_bytes = 0;  // samples that this loader has added
  uint64_t packed = 0;                // of these, the ones it has packed
  uint64_t refused = 0;               // samples that were not added, because it is full
  uint64_t damaged = 0;               // samples whose checksum was wrong
  uint64_t samples = 0, bytes = 0;    // in it now, as far as this process knows
  uint64_t most_bytes = 0;            // that it may take
};

// A snapshot; counters start when the loader is opened.
struct LoaderStats {
  uint64_t samples = 0;  // processed, including failed ones
  uint64_t bytes_read = 0;
  uint64_t batches = 0;        // delivered
  double batch_fill = 0;       // TokenBatches::fill; 0 without batch_tokens
  uint64_t fuller_tokens = 0;  // TokenBatches::fuller_budget
  BadCounts bad;               // in these batches, and in those replaced by an error
  StageTimes stages;           // summed over workers
  uint64_t work_ns = 0;        // workers' time on samples, including decode and resize
  CoreTime clocked;            // sampled: how much of that time workers had a core
  uint64_t read_cpu_ns = 0;    // CPU time of the Runtime's reader threads, for all loaders together
  uint64_t wait_ns = 0;        // time that Next() waited
  WaitCauses waited;           // the same by cause, without a wait that has not ended
  uint64_t consumer_ns = 0;    // time between receiving a batch and asking for the next one
  std::vector<uint64_t> worker_busy_ns;  // work_ns by worker
  DecodePaths decoded;                   // which decoders decoded JPEGs, and why
  bool may_have_crop_index = false;      // `stoker index` takes the samples' folder
  bool crops_at_random = false;          // RandomResizedCrop or RandomCrop is a transform
  CacheCounts cache;                     // of all iterations together

  uint64_t stalls = 0;  // number of long waits of Next() without progress (see RuntimeOptions)
  std::string stall;    // the last one: the unfinished work and its files; empty means none

  // The current settings, and the last decisions, newest last.
  int depth = 0;    // how many batches may be in production (opened, not delivered)
  int workers = 0;  // limit of workers that decode at a time
  int reads = 0;    // limit of reads in flight; 0 means nothing is read
  bool depth_given = false, workers_given = false,
       reads_given = false;  // given by the user, not tuned
  std::vector<TunerDecision> decisions;
  uint64_t decisions_made = 0;

  int lent_batches = 0;       // slots that the caller holds now, through a batch or an owner
  uint64_t lent_bytes = 0;    // their memory (without small columns kept separately)
  uint64_t slot_bytes = 0;    // one batch's memory
  uint64_t pinned_bytes = 0;  // of slots pinned for a device
  uint64_t pinning_ns = 0;    // time that pinning took
  uint64_t memory_used = 0;   // of the Runtime's budget, now
  uint64_t memory_peak = 0;   // highest memory_used so far
  uint64_t memory_budget = 0;

  int threads = 0;              // number of workers
  int threads_seen = 0;         // distinct threads that have run tasks
  std::string executor;         // "tbb", "threads"
  std::string executor_reason;  // why it differs from what was asked for (few threads, a fork);
                                // empty if it does not
  std::string reader;           // "uring", "pread"; "none" for samples in memory
  std::string reader_reason;
  std::string plan;        // the compiled transforms
  std::string map;         // the program's function; empty means none
  int map_threads = 0;     // call it with whole batches; 0 means workers call it with rows
  uint64_t map_calls = 0;  // calls with whole batches, which took stages.map_ns
};

// Adds the statistics of another loader of the same Runtime. Values of the Runtime and the current
// settings are taken from `one`. The longer of the two lists of decisions sets how many are kept.
void AddStats(LoaderStats& all, const LoaderStats& one);

// Returns a few sentences of advice, from the counters since the loader was opened. The first one
// starts with "The consumer is the limit", "The consumer waited 41% of the time: " and the reason,
// or, if the consumer only takes batches, "Decoding is the limit" (or "Storage", …). For example:
// "The consumer waited 41% of the time: decoding needs 6.2 cores and has 4. Add cores, build a crop
// index (`stoker index`), or decode smaller images." Never advises to set a tuned option,
// because that would end its tuning. Empty before the second batch.
std::string Advice(const LoaderStats& stats);

// Returns the first remedy to try of those in Advice: "Build a crop index (`stoker index`)."
// Remedies that need no other machine and change no pixel come first. `cold`: the page cache is
// emptied on purpose, so advice to keep files there does not apply. Empty if Advice has none.
std::string FirstChange(const LoaderStats& stats, bool cold = false);

// Text exposition format 0.0.4: the HELP, TYPE and samples of each metric, one line each. All
// metrics begin with "stoker_" and have the label `loader`, which may be any UTF-8 text; counters
// end in "_total"; units are seconds and bytes. Covers one loader; a page of several loaders must
// contain HELP and TYPE once.
std::string PrometheusText(const LoaderStats& stats, std::string_view loader_name);

}  // namespace stoker
