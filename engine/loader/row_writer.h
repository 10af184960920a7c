// RowWriter: what a worker does with a sample. The bytes of a photograph, or rows of arrays in
// memory, become the rows of their batch, and the rows of a whole batch are mixed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/memory_budget.h"
#include "core/result.h"
#include "core/slot_pool.h"
#include "engine/loader/mixer.h"
#include "engine/loader/options.h"
#include "engine/loader/order.h"
#include "engine/loader/samples_in_flight.h"
#include "engine/watching/sample_times.h"
#include "engine/watching/stats.h"
#include "engine/watching/worker_counters.h"
#include "transforms/plan/plan.h"

namespace stoker {

// Any thread; each of `workers` is one thread at a time, and has a workspace of its own. Every row
// is counted once, before its sample ends.
class RowWriter {
 public:
  // Where a worker's samples come from, and what becomes of them. Samples are those of `samples`.
  class Samples {
   public:
    // Another one that is ready, to be decoded in turns with those in hand; none: that is enough.
    virtual std::optional<uint32_t> TakeReady() = 0;
    // Its row was written, or could not be: the sample is another's from here on.
    virtual void End(uint32_t sample, uint64_t work_ns, Status status, int worker) = 0;
    // Instead of End, for a sample that found no memory: whether it waits, and that it does.
    virtual bool MustWait(uint32_t sample, Status& status) = 0;
    virtual void Postpone(uint32_t sample) = 0;

   protected:
    ~Samples() = default;
  };

  // `plan`: none where rows are copied as they are. What is referred to outlives it.
  RowWriter(const LoaderOptions& options, const EpochOrder& order, std::optional<Plan> plan,
            std::optional<Mixer> mixer, SamplesInFlight& samples, MemoryBudget& memory,
            int workers);

  // This photograph, and others that are ready: two in turns, a few in all.
  void Decode(uint32_t first, int worker, Samples& samples);

  // The rows of this sample, which are in memory.
  void Copy(uint32_t run, int worker, Samples& samples);

  // All rows of the slot with each other, where a mixer was asked for. Returns nanoseconds.
  uint64_t Mix(Slot& slot, int worker);

  const std::optional<Plan>& plan() const { return plan_; }
  bool mixes() const { return mixer_.has_value(); }
  WorkerCounters& counters(int worker) { return counters_[static_cast<size_t>(worker)]; }
  // By worker; none where rows are copied as they are.
  Workspace& workspace(int worker) { return *workspaces_[static_cast<size_t>(worker)]; }
  void FreeWorkspaces();  // when nobody works
  void AddTo(LoaderStats& stats) const;

 private:
  class InTurns;

  Status FillRun(const RowTicket& ticket, int worker, StageTimes& times);
  Status WriteLabels(const RowTicket& ticket) const;
  void* WorkOf(const Slot& slot, uint32_t row) const;

  const LoaderOptions& options_;
  const EpochOrder& order_;
  const std::optional<Plan> plan_;
  const std::optional<Mixer> mixer_;
  SamplesInFlight& samples_;
  std::vector<std::unique_ptr<Workspace, void (*)(Workspace*)>> workspaces_;  // by worker
  std::vector<WorkerCounters> counters_;                                      // by worker
  std::vector<WorkerPace> paces_;                                             // by worker
};

}  // namespace stoker
