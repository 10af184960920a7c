// SettingsController: changes a loader's settings while it runs. It gives each taken batch to the
// tuner, limits the tuner to the loader's share of the Runtime, and applies its decisions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/batch/slot_pool.h"
#include "core/time/stage_times.h"
#include "engine/memory/memory_manager.h"
#include "engine/metrics/stats.h"
#include "engine/production/batches/loader_trace.h"
#include "engine/tuning/batch_record.h"
#include "engine/tuning/tuner.h"

namespace stoker {

class Runtime;
struct LoaderOptions;
struct ProducerOptions;
struct RuntimeOptions;

// The largest useful depth, if none is fixed: 64 batches, or as many as hold twice the samples that
// can be in flight; 16 if slots are pinned.
int MaxDepth(const LoaderOptions& options, const ProducerOptions& own,
             const RuntimeOptions& runtime_options);

// The largest number of reads in flight; for a source with calls, its number of calls.
int MaxReads(const LoaderOptions& options, const RuntimeOptions& runtime_options);

TunerLimits LimitsOf(const LoaderOptions& options, const Runtime& runtime,
                     const MemoryPlan& memory);
TunerOptions TunerOptionsOf(const LoaderOptions& options, const Runtime& runtime);

// Used on the thread that calls Producer::Next (the consumer's, or the copier's), except AddTo.
// With each batch the settings in force follow what the lease grants, and the pool has slots for
// their depth.
class SettingsController {
 public:
  using Apply = std::function<void(const TunerSettings&)>;

  // `most`: the limits if there is no other loader. The depth has three limits, each at most the
  // one before: MaxDepth; that of `most`, planned from the memory available when the loader was
  // opened; and the lease's current grant. A depth within all three still needs room for its slots
  // in the budget.
  //
  // The pool has the slots of the lease's plan. The lease, the pool and the trace must outlive it;
  // `apply` is called with settings that are in force from then on, first by Start.
  SettingsController(const TunerOptions& options, const TunerLimits& most, MemoryLease& memory,
                     SlotPool& slots, const LoaderTrace& trace, Apply apply);

  void Start() { ApplyDecisions({}); }

  // Must be called for each batch that was taken.
  void Observe(const BatchRecord& batch);

  const TunerSettings& settings() const { return settings_; }

  // Adds settings, decisions and waits. Thread-safe.
  void AddTo(LoaderStats& stats) const;

 private:
  static constexpr size_t kDecisionsKept = 64;

  TunerLimits GrantedLimits() const;
  void ReportNeeds(uint64_t now_ns);
  void ApplyDecisions(std::span<const TunerDecision> decisions);
  void Keep(std::span<const TunerDecision> decisions, int room);
  int TakeSlots(int depth);

  const TunerLimits most_;
  MemoryLease& memory_;
  SlotPool& slots_;
  const LoaderTrace& trace_;
  const Apply apply_;
  uint64_t last_taken_ns_ = 0;   // when the last batch was delivered
  uint64_t next_report_ns_ = 0;  // when to report this loader's needs
  uint64_t next_growth_ns_ = 0;  // when to try again for more slots than `room_`
  int room_;                     // the plan's, until a batch was delivered
  bool refused_ = false;         // the last decision on the depth: a growth without room
  Tuner tuner_;                  // declared after what GrantedLimits reads

  mutable std::mutex mutex_;  // guards the members below
  WaitCauses waited_;
  uint64_t wait_ns_ = 0;
  uint64_t consumer_ns_ = 0;
  std::vector<TunerDecision> decisions_;  // the last ones
  uint64_t decisions_made_ = 0;
  TunerSettings settings_;  // in force; changed on the thread of Next alone
};

}  // namespace stoker
