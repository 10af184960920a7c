// Decoder: samples whose bytes have arrived, or that are in memory → rows of their batch. It also
// mixes the rows of complete batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/batch/slot_pool.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "engine/map/map_caller.h"
#include "engine/metrics/sample_times.h"
#include "engine/metrics/stats.h"
#include "engine/metrics/worker_counters.h"
#include "engine/options/options.h"
#include "engine/order/sampler.h"
#include "engine/production/mixer.h"
#include "engine/production/row_columns.h"
#include "engine/production/samples/row_processor.h"
#include "engine/production/samples/sample_cache.h"
#include "engine/production/samples/samples_in_flight.h"
#include "transforms/plan/plan.h"

namespace stoker {

// The result of a worker's attempt to turn a sample into rows.
struct SampleOutcome {
  enum class Kind : uint8_t {
    kRow,        // its rows are written
    kUnusable,   // it could not be read or decoded
    kFailed,     // its rows could not be written for another reason
    kNoMemory,   // it found no memory, and has not waited for any yet
    kReadAgain,  // its bytes must be read from its file
  };

  Kind kind = Kind::kRow;
  // The worker's time; 0 for kNoMemory and kReadAgain, which do not count yet.
  uint64_t work_ns = 0;
  Status status{};  // the error of kUnusable, kFailed and kNoMemory
};

// A row depends only on its sample's bytes, its key and the options, not on the worker. It is
// counted once, before it ends. Thread-safe as long as each of `workers` is used by one thread at a
// time; each has its own workspace.
class Decoder {
 public:
  // Supplies a worker with samples and takes them back. Indices refer to `samples` of the
  // constructor.
  class Samples {
   public:
    // Pulls another ready sample, to be decoded interleaved with the current ones, if there is one.
    virtual std::optional<uint32_t> TakeReady() = 0;
    // Gives back a sample that was taken.
    virtual void Done(uint32_t sample, SampleOutcome outcome, int worker) = 0;

   protected:
    ~Samples() = default;
  };

  // Completes the error of a sample that found no memory although no other work was in progress.
  using Refuse = std::function<Error(const Error&)>;

  // `plan`: null if rows are copied unchanged, or made by the options' processor. `map`: the
  // program's function, or null. `columns`: the columns of a batch. `cache`: reads and keeps
  // samples, or null. All references must outlive the Decoder.
  Decoder(const LoaderOptions& options, const Sampler& sampler, std::optional<Plan> plan,
          std::optional<Mixer> mixer, const MapCaller* map, std::vector<ColumnSpec> columns,
          SampleCache* cache, SamplesInFlight& samples, MemoryBudget& memory, Refuse refuse,
          int workers);
  Decoder(const Decoder&) = delete;  // columns_ refers to its plan and mixer
  Decoder& operator=(const Decoder&) = delete;

  // Decodes this photograph and a few others that are ready, two of them interleaved; or fills the
  // rows of this sample, which is in memory.
  void Turn(uint32_t first, int worker, Samples& samples);

  // Mixes all rows of the slot with each other, if a mixer was given. Returns the nanoseconds it
  // took.
  uint64_t Mix(Slot& slot, int worker);

  // Makes all rows of the slot as large as its largest image, if the plan pads batches. Returns the
  // nanoseconds it took.
  uint64_t Pad(Slot& slot, int worker);

  const std::optional<Plan>& plan() const { return plan_; }
  bool mixes() const { return mixer_.has_value(); }
  bool pads() const { return plan_ && plan_->pads_batches(); }
  // The workspace of a worker; precondition: there is a plan.
  Workspace& workspace(int worker) { return *workspaces_[static_cast<size_t>(worker)]; }
  // Frees what the worker holds beyond its usual memory. Called while memory is scarce.
  void Trim(int worker);
  void FreeWorkspaces();  // and packers; precondition: no worker is busy
  void AddTo(LoaderStats& stats) const;

 private:
  class DecodingTurn;

  WorkerCounters& counters(int worker) { return counters_[static_cast<size_t>(worker)]; }
  ImagePacker& packer(int worker) { return packers_[static_cast<size_t>(worker)]; }
  void Decode(uint32_t first, int worker, Samples& samples);
  DecodePaths PathsOfWorker(int worker);
  void Copy(uint32_t run, int worker, Samples& samples);
  bool MustWait(const SampleInFlight& sample, Status& status) const;
  Status FillRun(const RowClaim& claim, int worker, StageTimes& times);

  const LoaderOptions& options_;
  const SampleSource& source_;
  const Sampler& sampler_;
  const std::optional<Plan> plan_;
  const std::optional<Mixer> mixer_;
  const RowColumns columns_;                    // declared after the plan and the mixer
  std::optional<RowProcessor> processor_;       // makes the rows instead of a plan
  const bool has_records_;                      // SampleSource::has_records
  const bool has_objects_;                      // or shapes of them
  const std::vector<uint32_t> sizes_to_match_;  // by piece: the one whose size it must have
  const uint32_t pieces_;                       // of a sample, or 1
  SampleCache* const cache_;                    // may be null
  SamplesInFlight& samples_;
  const Refuse refuse_;
  std::vector<ImagePacker> packers_;  // by worker; empty without a cache
  std::vector<std::unique_ptr<Workspace, void (*)(Workspace*)>> workspaces_;  // by worker
  std::vector<WorkerCounters> counters_;                                      // by worker
  std::vector<WorkerPace> paces_;                                             // by worker
};

}  // namespace stoker
