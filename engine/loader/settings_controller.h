// SettingsController: a loader's settings while it runs. The tuner learns from each batch that was
// taken, other loaders of the Runtime have their say, and what is decided is applied.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "core/slot_pool.h"
#include "engine/loader/batch_record.h"
#include "engine/memory/memory_manager.h"
#include "engine/tuning/tuner.h"
#include "engine/watching/loader_trace.h"
#include "engine/watching/stats.h"

namespace stoker {

// The consumer's thread, but for AddTo. The settings in force are never more than was granted, and
// the pool has room for as many batches as their depth says.
class SettingsController {
 public:
  using Apply = std::function<void(const TunerSettings&)>;

  // `most`: what there may be if nobody else is there. The pool has the slots of the lease's plan.
  // The lease, the pool and the trace outlive it; `apply` is called with settings that are in force
  // from then on, first by Start.
  SettingsController(const TunerOptions& options, const TunerLimits& most, MemoryLease& memory,
                     SlotPool& slots, const LoaderTrace& trace, Apply apply);

  void Start() { ApplyTuned(); }

  // The next batch was taken.
  void Learn(const BatchRecord& batch);

  const TunerSettings& settings() const { return settings_; }

  // Settings, decisions and waits. Any thread.
  void AddTo(LoaderStats& stats) const;

 private:
  static constexpr size_t kDecisionsKept = 64;

  TunerLimits Granted() const;
  void TellNeeds(uint64_t now_ns);
  void Follow(std::span<const TunerDecision> decisions);
  void Keep(std::span<const TunerDecision> decisions);
  void ApplyTuned();
  int TakeSlots(int depth);

  const TunerLimits most_;
  MemoryLease& memory_;
  SlotPool& slots_;
  const LoaderTrace& trace_;
  const Apply apply_;
  uint64_t last_taken_ns_ = 0;  // when a batch was delivered last
  uint64_t tell_again_ns_ = 0;  // when to tell others what is needed
  uint64_t room_again_ns_ = 0;  // when to try for more memory than `room_`: there was none
  int room_ = 0;                // batches
  Tuner tuner_;

  mutable std::mutex mutex_;  // guards what follows
  LoaderStats counted_;       // waits and decisions
  TunerSettings settings_;    // in force; changed by the consumer's thread alone
};

}  // namespace stoker
