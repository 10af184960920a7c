// Producer::Impl: what a producer is inside. producer.cc has the way of a sample, in the order of
// the picture in the README; producer_in_memory.cc has that of samples that need no reader;
// producer_control.cc starts, stops and tells; producer_settings.cc follows the tuner;
// producer_memory.cc is for when memory is short.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/slot_pool.h"
#include "engine/loader/assembler.h"
#include "engine/loader/mixer.h"
#include "engine/loader/producer.h"
#include "engine/loader/samples_in_flight.h"
#include "engine/memory/memory_accounts.h"
#include "engine/memory/postponed.h"
#include "engine/runtime/tenants.h"
#include "engine/runtime/turnstile.h"
#include "engine/tuning/tuner.h"
#include "engine/watching/loader_trace.h"
#include "engine/watching/sample_times.h"
#include "engine/watching/worker_counters.h"
#include "transforms/plan/plan.h"

namespace stoker {

class Producer::Impl final : public ReadClient, public Postponed::Client {
 public:
  static Result<std::unique_ptr<Impl>> Wire(LoaderOptions options, const ProducerOptions& own);
  ~Impl();

  Result<Batch> Next(const Interrupt& interrupt);
  Status Seek(BatchName batch, Schedule schedule);
  Status Check(const char* call, BatchName batch) const;
  Status Append(BatchName batch);
  void Stop();
  LoaderStats Stats() const;
  BatchName position() const;
  uint64_t passed() const { return passed_; }
  const WaitCauses& waited() const { return assembler_->last().waited; }
  const LoaderOptions& options() const { return options_; }
  const std::vector<ColumnSpec>& columns() const { return slots_->columns(); }
  uint32_t last_rows() const { return order_.RowsIn(batches_per_epoch() - 1); }
  uint64_t batches_per_epoch() const { return order_.batches_per_epoch(); }

 private:
  using WorkspacePointer = std::unique_ptr<Workspace, void (*)(Workspace*)>;

  Impl(LoaderOptions options, EpochOrder order, std::optional<Plan> plan,
       std::optional<Mixer> mixer, std::unique_ptr<MemoryAccounts::Member> memory,
       std::shared_ptr<SlotPool> slots);

  // The way of one sample.
  size_t Pull(std::span<ReadRequest*> requests) override;  // a reader thread: order → reader
  size_t PullReads(std::span<ReadRequest*> requests);
  void Finish(ReadRequest& read) override;  // a reader thread: reader → worker
  void Submit(uint32_t index);
  void SendWorker();
  void BeginWork();
  void EndWork();
  static void Work(void* loader, uint32_t, int worker);  // a worker: bytes → row
  void WorkOn(int worker);
  void WorkFrom(uint32_t first, int worker);
  class ReadySamples;
  void* WorkOf(const Slot& slot, uint32_t row) const;
  void Decode(uint32_t first, int worker);
  bool ManyReady() const;
  void EndSample(uint32_t index, uint64_t work_ns, Status status, int worker);  // → assembler
  uint64_t MixBatch(Slot& slot, int worker);                                    // in between

  // Where memory is short (producer_memory.cc).
  bool MustWait(const SampleInFlight& sample, Status& status) const;
  void Postpone(uint32_t index);
  size_t PullTurn(std::span<ReadRequest*> requests);
  void DropPostponed();
  void GiveBack() override;
  void TrimBuffer(GrowingBuffer& buffer) const;
  void TrimWorkspace(Workspace& workspace) const;
  Error Refusal(const Error& error) const;

  // The same where the samples are in memory.
  void SubmitRuns();  // a reader thread: order → worker
  void CopyRun(uint32_t index, int worker);
  Status FillRun(const RowTicket& ticket, int worker, StageTimes& times);
  Status WriteLabels(const RowTicket& ticket) const;

  Result<Batch> Take(const Interrupt& interrupt);

  // The settings, which the tuner changes while the loader runs: the consumer's thread.
  static constexpr size_t kDecisionsKept = 64;
  TunerLimits Granted() const;
  void Learn(const BatchRecord& batch);
  void Share(uint64_t now_ns);
  void Follow(std::span<const TunerDecision> decisions);
  void Tell(std::span<const TunerDecision> decisions);
  void Settle();
  int DeepestOf(int depth);

  Status Start();
  void Halt();
  void StartAt(BatchName batch, Schedule schedule);

  const LoaderOptions options_;
  Runtime& runtime_;
  const EpochOrder order_;
  const std::optional<Plan> plan_;  // none: rows are copied as they are
  const std::optional<Mixer> mixer_;
  const std::unique_ptr<MemoryAccounts::Member> memory_;
  const bool in_memory_;  // the samples
  const LoaderTrace trace_;
  const uint32_t run_;  // rows that a worker fills in one go, at most
  const std::shared_ptr<SlotPool> slots_;
  SamplesInFlight samples_;
  std::atomic<uint32_t> in_work_{0};          // samples that were pulled, and tasks: not over yet
  Turnstile at_work_;                         // lets in as many workers as there may be
  std::vector<WorkspacePointer> workspaces_;  // by worker
  std::vector<WorkerCounters> counters_;      // by worker
  std::vector<WorkerPace> paces_;             // by worker
  std::unique_ptr<Assembler> assembler_;
  const TunerLimits most_;
  const std::unique_ptr<Tenants::Tenant> tenant_;
  Tuner tuner_;                  // the consumer's, as the next two
  uint64_t last_taken_ns_ = 0;   // when a batch was delivered last
  uint64_t share_again_ns_ = 0;  // when to look what others need
  uint64_t room_again_ns_ = 0;   // when to try for more memory than `room_`: there was none
  int room_ = 0;                 // batches

  mutable std::mutex lifecycle_;  // guards what follows, and the exchange of assembler_
  bool running_ = false;
  std::atomic<bool> stopped_{false};
  bool epoch_ended_ = false;            // the next Next says so; only the consumer's thread looks
  BatchName after_last_;                // delivered; the consumer's thread too
  uint64_t passed_ = 0;                 // batches; and again
  std::atomic<uint64_t> delivered_{0};  // batches

  mutable std::mutex told_mutex_;  // guards what follows
  LoaderStats told_;               // what Learn counts
  TunerSettings settings_;         // in force; changed by the consumer's thread alone
};

}  // namespace stoker
