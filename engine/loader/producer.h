// Producer: makes the batches of one iteration after another, in order. What a Loader has inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/batch.h"
#include "core/column_spec.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "core/slot_pool.h"
#include "engine/loader/assembler.h"
#include "engine/loader/batch_sequence.h"
#include "engine/loader/options.h"
#include "engine/loader/order.h"
#include "engine/loader/producer_options.h"
#include "engine/loader/read_feed.h"
#include "engine/loader/row_writer.h"
#include "engine/loader/samples_in_flight.h"
#include "engine/loader/settings_controller.h"
#include "engine/memory/memory_manager.h"
#include "engine/runtime/read_service.h"
#include "engine/runtime/turnstile.h"
#include "engine/watching/loader_trace.h"
#include "engine/watching/stats.h"

namespace stoker {

// Epochs follow each other without a pause: the next one is prefetched while the last batches of
// this one are taken. producer.cc has the way of a sample, in the order of the picture in the
// README; producer_memory.cc is for when memory is short.
//
// One thread at a time calls Next, Seek, Append, position, passed and waited; Stop and Stats may be
// called from any. In a forked child it may not even be destroyed: it is the parent's.
class Producer final : public ReadClient, public RowWriter::Samples {
 public:
  // Checks every option and reserves the memory. Reads nothing and starts nothing: the first Next
  // does. InvalidArgument names the option; ResourceExhausted names the smallest budget that would
  // do. `own`: none: as of a loader that has no other producer.
  static Result<std::unique_ptr<Producer>> Open(LoaderOptions options,
                                                std::optional<ProducerOptions> own = {});

  // Stops, waits for what is in work (a sample each), and gives the memory back. Batches that are
  // still held stay valid.
  ~Producer();

  // The next batch; an empty one once after the last of each epoch, and always after the last epoch
  // where `epochs` limits them. Waits until the batch is complete.
  //
  // A bad sample makes its batch an error that names file, offset and cause; the call after it goes
  // on with the next batch. Other errors: ResourceExhausted when the caller already holds
  // lent_batches (it never waits for itself); Cancelled after Stop, and when `interrupt` said so;
  // FailedPrecondition in a forked child.
  Result<Batch> Next(const Interrupt& interrupt = {});

  // The next Next delivers this batch, and those after it follow: of the next epochs, or of the
  // same one again and again. Nothing is replayed: O(1), apart from waiting for the samples that
  // are in work.
  Status Seek(BatchName batch, Schedule schedule = Schedule::kEpochs);
  Status CheckSeek(BatchName batch) const;  // what Seek would refuse; changes nothing

  // From the first call on, and until Seek, exactly the appended batches are made and delivered, in
  // the order of the calls; Next is empty when there are none left, and nothing else marks the end
  // of an epoch.
  Status Append(BatchName batch);

  // The batch that the next Next delivers: with Seek, all that is needed to resume. Where there is
  // none (after the last epoch, or with nothing appended): the one that follows what was last
  // delivered, in the order of the epochs.
  BatchName position() const { return assembler_->position().value_or(after_last_); }

  // Batches that Next has passed so far, good ones and errors that took the place of one.
  uint64_t passed() const { return passed_; }

  // What the last Next that passed a batch waited, by cause.
  const WaitCauses& waited() const { return assembler_->last().waited; }

  // Ends production; Next returns Cancelled, also one that waits now. Bounded by the time of the
  // samples in work.
  void Stop();

  LoaderStats Stats() const;
  uint64_t batches_per_epoch() const { return order_.batches_per_epoch(); }
  uint32_t last_rows() const { return order_.RowsIn(batches_per_epoch() - 1); }
  const std::vector<ColumnSpec>& columns() const { return slots_->columns(); }
  const LoaderOptions& options() const { return options_; }

 private:
  // What the loader may use, and the batches in production that it is used for.
  struct Reserved {
    std::unique_ptr<MemoryLease> lease;
    std::shared_ptr<SlotPool> slots;
  };

  Producer(LoaderOptions options, EpochOrder order, std::optional<Plan> plan,
           std::optional<Mixer> mixer, Reserved memory);

  // The way of one sample.
  size_t Pull(std::span<ReadRequest*> requests) override;  // a reader thread: order → reader
  void Finish(ReadRequest& read) override;                 // a reader thread: reader → worker
  void Submit(uint32_t sample);
  void SendWorker();
  static void Work(void* producer, uint32_t unused, int worker);  // a worker: bytes → row
  void WorkOnReady(int worker);
  std::optional<uint32_t> TakeReady() override;
  void End(uint32_t sample, uint64_t work_ns, Status status, int worker) override;  // → assembler

  // When memory is short (producer_memory.cc).
  static Result<Reserved> Reserve(const LoaderOptions& options, const ProducerOptions& own,
                                  const std::vector<ColumnSpec>& columns,
                                  const std::optional<Plan>& plan);
  bool MustWait(uint32_t sample, Status& status) override;
  void Postpone(uint32_t sample) override;
  size_t PullTurn(std::span<ReadRequest*> requests);
  void DropPostponed();
  void FreeIdleMemory();
  void TrimBuffer(GrowingBuffer& buffer) const;
  void TrimWorkspace(Workspace& workspace) const;

  void Apply(const TunerSettings& settings);
  Status Check(const char* call, BatchName batch) const;
  Status Start();
  void Halt();
  void StartAt(BatchName batch, Schedule schedule);

  const LoaderOptions options_;
  Runtime& runtime_;
  const EpochOrder order_;
  const bool in_memory_;  // the samples
  const LoaderTrace trace_;
  const std::shared_ptr<SlotPool> slots_;
  SamplesInFlight samples_;
  ReadFeed feed_;
  Turnstile at_work_;  // lets in as many workers as there may be
  RowWriter writer_;
  std::unique_ptr<Assembler> assembler_;       // exchanged under lifecycle_
  const std::unique_ptr<MemoryLease> memory_;  // goes before the memory that it may have freed
  SettingsController settings_;                // after all that it applies them to

  mutable std::mutex lifecycle_;  // guards what follows
  bool running_ = false;
  std::atomic<bool> stopped_{false};
  bool epoch_ended_ = false;            // the next Next says so; only the consumer's thread looks
  BatchName after_last_;                // delivered; the consumer's thread too
  uint64_t passed_ = 0;                 // batches; and again
  std::atomic<uint64_t> delivered_{0};  // batches
};

}  // namespace stoker
