// A loader's life: where it goes on, how it starts and ends, what it has done.
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "core/try.h"
#include "engine/loader/check_options.h"
#include "engine/loader/loader.h"
#include "engine/loader/loader_impl.h"
#include "transforms/plan/explain.h"

namespace stoker {

Status Loader::Impl::Seek(BatchName batch, Schedule schedule) {
  TRY(Check("Seek to", batch));
  Halt();
  epoch_ended_ = false;
  after_last_ = batch;
  StartAt(batch, schedule);
  return {};
}

Status Loader::Impl::Append(BatchName batch) {
  TRY(Check("Append", batch));
  if (assembler_->schedule() != Schedule::kAppended) {
    if (Status s = Seek(batch, Schedule::kAppended); !s.ok()) return s;
  }
  assembler_->Append(batch);
  return {};
}

Status Loader::Impl::Check(const char* call, BatchName batch) const {
  TRY(runtime_.CheckProcess());
  if (batch.epoch > kMostEpochs) {
    return Error{Code::kInvalidArgument, std::string(call) + " epoch " +
                                             std::to_string(batch.epoch) + "; at most " +
                                             std::to_string(kMostEpochs) + " is possible"};
  }
  if (batch.index >= batches_per_epoch()) {
    return Error{Code::kInvalidArgument,
                 std::string(call) + " batch " + std::to_string(batch.index) +
                     " of an epoch that has " + std::to_string(batches_per_epoch())};
  }
  return {};
}

void Loader::Impl::StartAt(BatchName batch, Schedule schedule) {
  BatchSequence sequence(schedule, batches_per_epoch(), batch,
                         options_.epochs.value_or(kMostEpochs));
  std::lock_guard lock(lifecycle_);
  assembler_.reset();  // gives its slots back before the next one takes them
  assembler_ = std::make_unique<Assembler>(order_, slots_, settings_.depth, most_.depth,
                                           std::move(sequence));
}

// Attaches to the reader threads; they begin to pull.
Status Loader::Impl::Start() {
  std::lock_guard lock(lifecycle_);
  if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
  if (running_) return {};
  Status attached = runtime_.reads().Attach(this);
  running_ = attached.ok();
  return attached;
}

// Ends production and waits for the samples in work. They are few and end by themselves, so asking
// again and again costs less than a signal from each of them would.
void Loader::Impl::Halt() {
  std::lock_guard lock(lifecycle_);
  if (std::exchange(running_, false)) runtime_.reads().Detach(this);
  while (in_work_.load(std::memory_order_acquire) != 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  DropPostponed();
}

void Loader::Impl::Stop() {
  {
    std::lock_guard lock(lifecycle_);
    assembler_->Cancel();  // first, so that no batch is delivered as failed by samples given up
    stopped_ = true;
  }
  Halt();
}

Loader::Impl::~Impl() {
  Stop();
  runtime_.postponed().Leave(*this);
  assembler_.reset();
  slots_->Retire();
}

LoaderStats Loader::Impl::Stats() const {
  LoaderStats stats;
  {
    std::lock_guard lock(told_mutex_);
    stats = told_;
    stats.depth = settings_.depth;
    stats.workers = settings_.workers;
    stats.reads = in_memory_ ? 0 : settings_.reads;
  }
  stats.depth_given = options_.depth != 0;
  stats.workers_given = runtime_.fixed().workers != 0;
  stats.reads_given = runtime_.fixed().reads != 0;
  for (const WorkerCounters& counters : counters_) counters.AddTo(stats);
  stats.batches = delivered_;
  stats.read_cpu_ns = runtime_.reads().read_cpu_ns();
  stats.lent_batches = slots_->account().batches();
  stats.lent_bytes = slots_->account().bytes();
  stats.slot_bytes = slots_->slot_bytes();
  stats.pinned_bytes = slots_->pinned_bytes();
  stats.memory_used = runtime_.budget().used();
  stats.memory_peak = runtime_.budget().peak();
  stats.memory_budget = runtime_.budget().limit();
  stats.threads = runtime_.executor().concurrency();
  stats.threads_seen = runtime_.executor().threads_seen();
  stats.executor = runtime_.executor().name();
  stats.executor_reason = runtime_.executor_reason();
  stats.reader = runtime_.reader().kind == ReaderKind::kUring ? "uring" : "pread";
  stats.reader_reason = runtime_.reader().reason;
  if (in_memory_) {
    stats.reader = "none";
    stats.reader_reason = "the samples are in memory";
  }
  stats.plan = plan_ ? plan_->Describe() : "rows copied as they are";
  if (options_.mix) stats.plan += "; batches: " + TextOf(*options_.mix);
  return stats;
}

Loader::Position Loader::Impl::position() const {
  return assembler_->position().value_or(after_last_);
}

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Loader::~Loader() {
  if (!impl_->options().runtime->CheckProcess().ok()) (void)impl_.release();  // a forked child's
}

Result<std::unique_ptr<Loader>> Loader::Open(LoaderOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Wire(std::move(options)));
  return std::unique_ptr<Loader>(new Loader(std::move(impl)));
}

Result<Batch> Loader::Next(const Interrupt& interrupt) { return impl_->Next(interrupt); }
Status Loader::Seek(uint64_t epoch, uint64_t index, Schedule schedule) {
  return impl_->Seek({epoch, index}, schedule);
}
Status Loader::CheckSeek(uint64_t epoch, uint64_t index) const {
  return impl_->Check("Seek to", {epoch, index});
}
Status Loader::Append(uint64_t epoch, uint64_t index) { return impl_->Append({epoch, index}); }
Loader::Position Loader::position() const { return impl_->position(); }
uint64_t Loader::passed() const { return impl_->passed(); }
WaitCauses Loader::waited() const { return impl_->waited(); }
void Loader::Stop() {
  if (impl_->options().runtime->CheckProcess().ok())
    impl_->Stop();  // nothing runs in a fork's child
}

LoaderStats Loader::Stats() const {
  return impl_->options().runtime->CheckProcess().ok() ? impl_->Stats() : LoaderStats();
}

const std::vector<ColumnSpec>& Loader::columns() const { return impl_->columns(); }
uint32_t Loader::last_rows() const { return impl_->last_rows(); }
uint64_t Loader::batches_per_epoch() const { return impl_->batches_per_epoch(); }
const LoaderOptions& Loader::options() const { return impl_->options(); }

}  // namespace stoker
