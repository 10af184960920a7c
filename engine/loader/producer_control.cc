// A loader's life: where it goes on, how it starts and ends, what it has done.
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "core/try.h"
#include "engine/loader/check_options.h"
#include "engine/loader/producer.h"
#include "engine/loader/producer_impl.h"
#include "transforms/plan/explain.h"

namespace stoker {

Status Producer::Impl::Seek(BatchName batch, Schedule schedule) {
  TRY(Check("Seek to", batch));
  Halt();
  epoch_ended_ = false;
  after_last_ = batch;
  StartAt(batch, schedule);
  return {};
}

Status Producer::Impl::Append(BatchName batch) {
  TRY(Check("Append", batch));
  if (assembler_->schedule() != Schedule::kAppended) {
    if (Status s = Seek(batch, Schedule::kAppended); !s.ok()) return s;
  }
  assembler_->Append(batch);
  return {};
}

Status Producer::Impl::Check(const char* call, BatchName batch) const {
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

void Producer::Impl::StartAt(BatchName batch, Schedule schedule) {
  BatchSequence sequence(schedule, batches_per_epoch(), batch,
                         options_.epochs.value_or(kMostEpochs));
  std::lock_guard lock(lifecycle_);
  assembler_.reset();  // gives its slots back before the next one takes them
  assembler_ = std::make_unique<Assembler>(order_, slots_, settings_.depth, most_.depth,
                                           std::move(sequence));
}

// Attaches to the reader threads; they begin to pull.
Status Producer::Impl::Start() {
  std::lock_guard lock(lifecycle_);
  if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
  if (running_) return {};
  Status attached = runtime_.reads().Attach(this);
  running_ = attached.ok();
  return attached;
}

// Ends production and waits for the samples in work. They are few and end by themselves, so asking
// again and again costs less than a signal from each of them would.
void Producer::Impl::Halt() {
  std::lock_guard lock(lifecycle_);
  if (std::exchange(running_, false)) runtime_.reads().Detach(this);
  while (in_work_.load(std::memory_order_acquire) != 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  DropPostponed();
}

void Producer::Impl::Stop() {
  {
    std::lock_guard lock(lifecycle_);
    assembler_->Cancel();  // first, so that no batch is delivered as failed by samples given up
    stopped_ = true;
  }
  Halt();
}

Producer::Impl::~Impl() {
  Stop();
  runtime_.postponed().Leave(*this);
  assembler_.reset();
  slots_->Retire();
}

LoaderStats Producer::Impl::Stats() const {
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

BatchName Producer::Impl::position() const { return assembler_->position().value_or(after_last_); }

Producer::Producer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Producer::~Producer() {
  if (!impl_->options().runtime->CheckProcess().ok()) (void)impl_.release();  // a forked child's
}

Result<std::unique_ptr<Producer>> Producer::Open(LoaderOptions options,
                                                 std::optional<ProducerOptions> own) {
  if (!own) {
    ASSIGN_OR_RETURN(own, ProducerOptionsOf(options));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Wire(std::move(options), *own));
  return std::unique_ptr<Producer>(new Producer(std::move(impl)));
}

Result<Batch> Producer::Next(const Interrupt& interrupt) { return impl_->Next(interrupt); }
Status Producer::Seek(BatchName batch, Schedule schedule) { return impl_->Seek(batch, schedule); }
Status Producer::CheckSeek(BatchName batch) const { return impl_->Check("Seek to", batch); }
Status Producer::Append(BatchName batch) { return impl_->Append(batch); }
BatchName Producer::position() const { return impl_->position(); }
uint64_t Producer::passed() const { return impl_->passed(); }
WaitCauses Producer::waited() const { return impl_->waited(); }
void Producer::Stop() {
  if (impl_->options().runtime->CheckProcess().ok())
    impl_->Stop();  // nothing runs in a fork's child
}

LoaderStats Producer::Stats() const {
  return impl_->options().runtime->CheckProcess().ok() ? impl_->Stats() : LoaderStats();
}

const std::vector<ColumnSpec>& Producer::columns() const { return impl_->columns(); }
uint32_t Producer::last_rows() const { return impl_->last_rows(); }
uint64_t Producer::batches_per_epoch() const { return impl_->batches_per_epoch(); }
const LoaderOptions& Producer::options() const { return impl_->options(); }

}  // namespace stoker
