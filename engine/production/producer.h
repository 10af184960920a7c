// Producer: makes the batches of iterations, one after another, in order. Private to the engine; a
// Loader uses it as a BatchMaker, or through DeviceStage.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/slot_pool.h"
#include "core/result/result.h"
#include "engine/map/map_caller.h"
#include "engine/memory/memory_manager.h"
#include "engine/metrics/stall_watch.h"
#include "engine/metrics/stats.h"
#include "engine/options/options.h"
#include "engine/order/batch_sequence.h"
#include "engine/order/sampler.h"
#include "engine/production/batches/batch_maker.h"
#include "engine/production/batches/loader_trace.h"
#include "engine/production/producer_options.h"
#include "engine/production/producer_parts.h"
#include "engine/production/settings_controller.h"
#include "engine/production/stages.h"
#include "engine/production/unfinished_work.h"
#include "engine/runtime/read_service.h"

namespace stoker {

// Ties the stages of stages.h. Epochs follow each other without a pause: the next one is prefetched
// while the last batches of this one are taken.
//
// Next, Seek, Append, position, passed and waited are called by one thread at a time; Cancel,
// Stop, TryStop and Stats by any. In a forked child the object must not even be destroyed: it
// belongs to the parent.
class Producer final : public BatchMaker, public Decoder::Samples {
 public:
  // Checks every option and reserves the memory. It reads nothing and starts no thread; the first
  // Next does. InvalidArgument names the option; ResourceExhausted names the smallest sufficient
  // budget. `own`: the producer's own options; by default those of a loader with a single producer.
  static Result<std::unique_ptr<Producer>> Open(LoaderOptions options,
                                                std::optional<ProducerOptions> own = {});

  // Stops, waits for the samples in progress, and releases the memory. Batches that the caller
  // still holds stay valid.
  ~Producer() override;

  // Waits for the next batch and returns it; returns an empty batch once after the last of each
  // epoch, and always after the last epoch if `epochs` limits them.
  //
  // If a sample cannot be read or decoded, on_bad decides: by default Next returns an error, with
  // file, offset and cause, instead of the batch, and the call after it continues with the next
  // batch. A batch whose rows were all dropped is returned without rows. Other errors:
  // ResourceExhausted when the caller already holds lent_batches (Next does not wait for them to be
  // released); Cancelled after Stop, and when `interrupt` returned true; FailedPrecondition in a
  // forked child.
  Result<Batch> Next(const Interrupt& interrupt = {}) override;

  // Makes Next deliver this batch next, followed by the batches after it: of the next epochs, or of
  // the same one again and again. Nothing is replayed: O(1), apart from waiting for the samples and
  // the call of the program's function in progress. Cancelled if `interrupt` ended that wait:
  // production then stops, and the next call must be another Seek.
  Status Seek(BatchName batch, Schedule schedule = Schedule::kEpochs,
              const Interrupt& interrupt = {}) override;
  Status CheckSeek(BatchName batch) const;  // the error that Seek would return; changes nothing

  // From the first Append until Seek, exactly the appended batches are made and delivered, in the
  // order of the calls; Next returns an empty batch when none is left, and does not mark the ends
  // of epochs.
  Status Append(BatchName batch) override;

  // The batch that Next delivers next; Seek to it resumes production. If there is none (after the
  // last epoch, or with nothing appended), the batch that follows the last delivered one in the
  // order of epochs. Nullopt after a Seek that was interrupted.
  std::optional<BatchName> position() const override;
  Schedule schedule() const override { return assembler_.schedule(); }

  // The number of batches that Next has returned so far, including those replaced by an error.
  uint64_t passed() const override { return passed_; }
  void EndEpoch() override { (void)Next(); }

  // Reports that the next one of the batches that Next returned has been delivered, so that its bad
  // samples count. For a loader with a device, whose copier calls Next ahead of the consumer. Any
  // thread.
  void CountDelivered() { bad_.RecordDelivered(); }

  // The wait of the last Next that returned a batch, by cause.
  const WaitCauses& waited() const { return assembler_.last().waited; }

  // Ends production; Next returns Cancelled, also a Next that is waiting. Waits for nothing.
  void Cancel() override;

  // Cancels, then waits for the samples and the call of the program's function in progress.
  void Stop() override {
    Cancel();
    (void)lifecycle_.Halt();
  }
  // The same, but returns false if they are still in progress after a few times kInterruptInterval.
  [[nodiscard]] bool TryStop() override {
    Cancel();
    return lifecycle_.TryHalt();
  }

  LoaderStats Stats() const override;
  uint64_t batches_per_epoch() const { return sampler_.batches_per_epoch(); }
  uint64_t batches_from(uint64_t start) const { return sampler_.batches_from(start); }
  uint32_t last_rows() const { return sampler_.RowsIn({0, batches_per_epoch() - 1}); }
  const std::vector<ColumnSpec>& columns() const override { return slots_->columns(); }
  Producer& producer() override { return *this; }
  const std::string& not_pinned() const { return slots_->not_pinned(); }  // see SlotPool
  const LoaderOptions& options() const { return options_; }

 private:
  explicit Producer(ProducerParts parts);

  // Samples pass through a worker here.
  static void Turn(void* producer, uint32_t first, int worker);
  std::optional<uint32_t> TakeReady() override;
  void Done(uint32_t sample, SampleOutcome outcome, int worker) override;
  uint64_t NextSubstitute(SampleInFlight& sample) const;
  OnBad ActionOn(const SampleInFlight& sample, Error& error);

  Lifecycle::Work WorkOfStages();
  BatchSequence SequenceFrom(BatchName batch, Schedule schedule = Schedule::kEpochs) const;
  void Apply(const TunerSettings& settings);
  void CheckForStall();

  const LoaderOptions options_;
  Runtime& runtime_;
  const Sampler sampler_;
  const std::shared_ptr<ReadService> own_reads_;  // the threads of a source with calls or objects
  ReadService& reads_;                            // these threads, or the Runtime's reader threads
  const LoaderTrace trace_;
  const std::shared_ptr<SlotPool> slots_;
  SamplesInFlight samples_;
  const std::shared_ptr<SampleCache> cache_;  // shared by all producers of a loader, or null
  const std::optional<MapCaller> map_;        // the program's function
  // The stages, from the last one to the first.
  Assembler assembler_;                     // restarted by Seek
  const std::unique_ptr<MapThreads> maps_;  // null without a function of whole batches
  Decoder decoder_;
  const std::unique_ptr<MemoryLease> memory_;  // destroyed before the memory that it may free
  BatchFinisher finisher_;
  WorkerTasks workers_;
  Feeder feeder_;
  // These watch the stages and change them.
  Lifecycle lifecycle_;
  BadSamples bad_;
  StallWatch stalls_;
  const UnfinishedWork unfinished_;
  SettingsController settings_;  // declared after the members that settings change

  // Used by the consumer's thread only, except `delivered_`.
  bool epoch_ended_ = false;  // Next reports it once
  bool needs_seek_ = false;   // the last one was interrupted, and nothing is produced
  BatchName after_last_;
  uint64_t passed_ = 0;                 // batches
  std::atomic<uint64_t> delivered_{0};  // batches
};

}  // namespace stoker
