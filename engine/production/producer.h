// Producer: makes the batches of one iteration after another, in order. Private to the engine; a
// Loader uses it through Engine and Staging.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/index_set.h"
#include "core/batch/slot_pool.h"
#include "core/result/result.h"
#include "engine/map/map_caller.h"
#include "engine/memory/memory_manager.h"
#include "engine/metrics/loader_trace.h"
#include "engine/metrics/stall_watch.h"
#include "engine/metrics/stats.h"
#include "engine/options/options.h"
#include "engine/order/batch_sequence.h"
#include "engine/order/sampler.h"
#include "engine/production/assembler.h"
#include "engine/production/bad_sample_log.h"
#include "engine/production/bad_samples.h"
#include "engine/production/map_threads.h"
#include "engine/production/producer_options.h"
#include "engine/production/read_feed.h"
#include "engine/production/row_writer.h"
#include "engine/production/samples_in_flight.h"
#include "engine/production/settings_controller.h"
#include "engine/runtime/concurrency_limit.h"
#include "engine/runtime/read_service.h"

namespace stoker {

// Epochs follow each other without a pause: the next one is prefetched while the last batches of
// this one are taken. producer.cc shows the path of a sample, in the order of the picture in the
// README; producer_memory.cc handles memory shortage, producer_stall.cc says what has not ended
// when nothing moves.
//
// Next, Seek, Append, position, passed and waited are called by one thread at a time; Cancel,
// Stop, TryStop and Stats by any. In a forked child the object must not even be destroyed: it
// belongs to the parent.
class Producer final : public ReadClient, public RowWriter::Samples {
 public:
  // Checks every option and reserves the memory. It reads nothing and starts no thread; the first
  // Next does. InvalidArgument names the option; ResourceExhausted names the smallest sufficient
  // budget. `own`: the producer's own options; none: those of a loader with a single producer.
  static Result<std::unique_ptr<Producer>> Open(LoaderOptions options,
                                                std::optional<ProducerOptions> own = {});

  // Stops, waits for the samples in progress, and releases the memory. Batches that the caller
  // still holds stay valid.
  ~Producer();

  // Waits for the next batch and returns it; returns an empty batch once after the last of each
  // epoch, and always after the last epoch if `epochs` limits them.
  //
  // If a sample cannot be read or decoded, on_bad says what happens: by default Next returns an
  // error that names file, offset and cause instead of the batch, and the call after it continues
  // with the next batch. A batch of which all rows were dropped is returned without rows. Other
  // errors: ResourceExhausted when the caller already holds lent_batches (Next does not wait for
  // them to be released); Cancelled after Stop, and when `interrupt` returned true;
  // FailedPrecondition in a forked child.
  Result<Batch> Next(const Interrupt& interrupt = {});

  // Makes Next deliver this batch next, followed by the batches after it: of the next epochs, or of
  // the same one again and again. Nothing is replayed: O(1), apart from waiting for the samples and
  // the call of the program's function in progress. Cancelled if `interrupt` ended that wait: then
  // production stands until a Seek, before which Next must not be called.
  Status Seek(BatchName batch, Schedule schedule = Schedule::kEpochs,
              const Interrupt& interrupt = {});
  Status CheckSeek(BatchName batch) const;  // the error that Seek would return; changes nothing

  // From the first Append until Seek, exactly the appended batches are made and delivered, in the
  // order of the calls; Next returns an empty batch when none is left, and does not mark the ends
  // of epochs.
  Status Append(BatchName batch);

  // The batch that Next delivers next; Seek to it resumes production. If there is none (after the
  // last epoch, or with nothing appended): the batch that follows the last delivered one in the
  // order of epochs.
  BatchName position() const { return assembler_.position().value_or(after_last_); }

  // The number of batches that Next has returned so far, including those replaced by an error.
  uint64_t passed() const { return passed_; }

  // Reports that the next one of the batches that Next returned has been delivered, so that its bad
  // samples count. For a loader with a device, whose stager calls Next ahead of the consumer. Any
  // thread.
  void CountDelivered() { bad_.Delivered(); }

  // The wait of the last Next that returned a batch, by cause.
  const WaitCauses& waited() const { return assembler_.last().waited; }

  // Ends production; Next returns Cancelled, also a Next that is waiting. Waits for nothing.
  void Cancel();

  // Cancels, then waits for the samples and the call of the program's function in progress.
  void Stop();
  // Stops, but returns false if they are still in progress after a few times kInterruptInterval.
  [[nodiscard]] bool TryStop();

  LoaderStats Stats() const;
  uint64_t batches_per_epoch() const { return sampler_.batches_per_epoch(); }
  uint64_t batches_from(uint64_t start) const { return sampler_.batches_from(start); }
  uint32_t last_rows() const { return sampler_.RowsIn({0, batches_per_epoch() - 1}); }
  const std::vector<ColumnSpec>& columns() const { return slots_->columns(); }
  const std::string& not_pinned() const { return slots_->not_pinned(); }  // see SlotPool
  const LoaderOptions& options() const { return options_; }

 private:
  // The loader's share of the memory budget, and the slots of its batches in production.
  struct Reserved {
    std::unique_ptr<MemoryLease> lease;
    std::shared_ptr<SlotPool> slots;
  };

  Producer(LoaderOptions options, Sampler sampler, std::optional<Plan> plan,
           std::optional<Mixer> mixer, std::optional<MapCaller> map,
           std::shared_ptr<BadSampleLog> bad, std::shared_ptr<SampleCache> cache, Reserved memory);

  // The path of one sample.
  size_t Pull(std::span<ReadRequest*> requests) override;  // a reader thread: order → reader
  void CompleteRead(ReadRequest& read) override;           // a reader thread: reader → worker
  size_t PullNew(std::span<ReadRequest*> requests);
  bool IsInCache(uint32_t sample);
  void Submit(uint32_t sample);
  void SendWorker(WorkToken task);
  static void Work(void* producer, uint32_t unused, int worker);  // a worker: bytes → row
  void ProcessReady(int worker);
  std::optional<uint32_t> TakeReady() override;
  void End(uint32_t sample, uint64_t work_ns, Status status, int worker) override;  // → assembler

  // Samples that cannot be used (producer_faults.cc).
  bool Forgive(uint32_t sample, uint64_t work_ns, Error& error, int worker) override;
  void Substitute(uint32_t sample);
  void ReadFromFile(uint32_t sample) override;
  void PutBack(uint32_t sample);
  size_t PullSubstitutes(std::span<ReadRequest*> requests);
  void DropSubstitutes();

  // Memory shortage (producer_memory.cc).
  static Result<Reserved> Reserve(const LoaderOptions& options, const ProducerOptions& own,
                                  const std::vector<ColumnSpec>& columns,
                                  const std::optional<Plan>& plan);
  bool MustWait(uint32_t sample, Status& status) override;
  void Postpone(uint32_t sample) override;
  size_t PullRetry(std::span<ReadRequest*> requests);
  void DropPostponed();
  void FreeIdleMemory();
  void TrimBuffer(GrowingBuffer& buffer) const;
  void TrimWorkspace(Workspace& workspace) const;
  void TrimPacker(JpegPacker& packer) const;

  // Stalls (producer_stall.cc).
  void LookForStall();
  std::string FilesOf(std::vector<SamplesInFlight::Placed> samples) const;
  uint64_t StateOfWork() const;
  std::string WorkNotEnded() const;

  void Apply(const TunerSettings& settings);
  std::unique_ptr<MapThreads> MakeMaps();
  Status Check(const char* call, BatchName batch) const;
  Error TooManyLent() const;
  Status Start();
  Status Halt(const Interrupt& interrupt = {});
  bool TryHalt();
  bool EndWork();
  BatchSequence SequenceFrom(BatchName batch, Schedule schedule = Schedule::kEpochs) const;
  Status StartAt(BatchName batch, Schedule schedule);

  const LoaderOptions options_;
  Runtime& runtime_;
  const Sampler sampler_;
  const bool in_memory_;  // the samples are in memory
  const bool has_calls_;
  const std::shared_ptr<ReadService> own_reads_;  // the threads of a source with calls or objects
  ReadService& reads_;                            // these threads, or the Runtime's reader threads
  const LoaderTrace trace_;
  const std::shared_ptr<SlotPool> slots_;
  SamplesInFlight samples_;
  IndexSet substitutes_;  // samples that take the place of others, or that the cache has lost, to
                          // be read
  const std::shared_ptr<SampleCache> cache_;  // of all producers of a loader; null: none
  ConcurrencyLimit concurrency_;              // limits how many workers decode at a time
  const std::optional<MapCaller> map_;        // the program's function
  RowWriter writer_;
  ReadFeed feed_;
  Assembler assembler_;                     // restarted under lifecycle_
  const std::unique_ptr<MapThreads> maps_;  // null: no function of whole batches
  BadSamples bad_;
  const std::unique_ptr<MemoryLease> memory_;  // destroyed before the memory that it may free
  StallWatch stalls_;
  SettingsController settings_;  // declared after everything that settings are
                                 // applied to

  std::mutex lifecycle_;  // serializes Start, StartAt and Cancel, which do not wait
  std::condition_variable halted_;
  bool halting_ = false;                // a thread is in EndWork. Under lifecycle_
  std::atomic<bool> running_{false};    // Pull may be called
  std::atomic<bool> ending_{false};     // work ends: samples get no substitutes,
                                        // and wait for no memory
  std::atomic<bool> stopped_{false};    // set once, under lifecycle_
  bool epoch_ended_ = false;            // Next reports it once; used by the consumer's thread only
  BatchName after_last_;                // used by the consumer's thread only
  uint64_t passed_ = 0;                 // batches; used by the consumer's thread only
  std::atomic<uint64_t> delivered_{0};  // batches
};

}  // namespace stoker
