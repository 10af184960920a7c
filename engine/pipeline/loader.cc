#include "engine/pipeline/loader.h"

#include <limits.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/core/index_set.h"
#include "engine/core/slot_pool.h"
#include "engine/pipeline/assembler.h"
#include "engine/pipeline/check_options.h"
#include "engine/pipeline/memory_plan.h"
#include "engine/pipeline/worker_counters.h"
#include "transforms/plan.h"

namespace stoker {

// A sample on its way: one of a fixed set, used again and again.
struct SampleInFlight {
  ReadRequest read;  // the file's bytes, and the buffer they lie in
  SampleRef sample;
  DrawKey draw;      // what its random transforms depend on
  RowTicket ticket;  // the row that it becomes
};

class Loader::Impl final : public ReadClient {
 public:
  static Result<std::unique_ptr<Impl>> Wire(LoaderOptions options);
  ~Impl();

  Result<Batch> Next();
  Status Seek(uint64_t epoch, uint64_t index);
  void Stop();
  LoaderStats Stats() const;
  Position position() const;
  const LoaderOptions& options() const { return options_; }
  uint64_t batches_per_epoch() const { return order_.batches_per_epoch(); }

 private:
  using WorkspacePointer = std::unique_ptr<Workspace, void (*)(Workspace*)>;

  Impl(LoaderOptions options, EpochOrder order, Plan plan, MemoryPlan memory,
       std::shared_ptr<SlotPool> slots);

  // The way of one sample.
  size_t Pull(std::span<ReadRequest*> requests) override;      // a reader thread: order → reader
  void Finish(ReadRequest& read) override;                     // a reader thread: reader → worker
  static void Work(void* loader, uint32_t index, int worker);  // a worker: bytes → row
  Status Decode(SampleInFlight& sample, int worker);
  void TrimBuffer(GrowingBuffer& buffer);

  bool TooFewFree();
  uint64_t LastBatch() const { return options_.epochs.value_or(kMostEpochs) * batches_per_epoch(); }
  Status Start();
  void Halt();
  void StartAt(uint64_t batch);

  const LoaderOptions options_;
  Runtime& runtime_;
  const EpochOrder order_;
  const Plan plan_;
  const MemoryPlan memory_;
  const std::shared_ptr<SlotPool> slots_;
  std::vector<SampleInFlight> samples_;
  IndexSet free_samples_;
  std::atomic<bool> starved_{false};  // Pull found too few free samples, and waits for a Kick
  std::atomic<uint32_t> in_work_{0};  // samples pulled whose work is not over
  std::vector<WorkspacePointer> workspaces_;  // by worker
  std::vector<WorkerCounters> counters_;      // by worker
  std::unique_ptr<Assembler> assembler_;

  mutable std::mutex lifecycle_;  // guards what follows, and the exchange of assembler_
  bool running_ = false;
  std::atomic<bool> stopped_{false};
  bool epoch_ended_ = false;            // the next Next says so; only the consumer's thread looks
  std::atomic<uint64_t> delivered_{0};  // batches
  uint64_t past_wait_ns_ = 0;
};

// The stages, in the order of the picture in the README:
// source → order → (draw) → reader → worker → assembler → consumer.
Result<std::unique_ptr<Loader::Impl>> Loader::Impl::Wire(LoaderOptions options) {
  if (Status s = CheckOptions(options); !s.ok()) return std::move(s).error();
  if (options.runtime == nullptr) {
    Result<std::shared_ptr<Runtime>> shared = Runtime::Default();
    if (!shared.ok()) return std::move(shared).error();
    options.runtime = *std::move(shared);
  }
  Runtime& runtime = *options.runtime;
  if (Status s = runtime.CheckProcess(); !s.ok()) return std::move(s).error();

  Result<EpochOrder> order = EpochOrder::Make(OrderOptionsOf(options));
  if (!order.ok()) return std::move(order).error();

  Result<Plan> plan =
      Plan::Compile(options.transforms, {.dtype = options.dtype,
                                         .exif_orientation = options.exif_orientation,
                                         .limits = options.limits});
  if (!plan.ok()) return std::move(plan).error();

  const std::vector<ColumnSpec> columns = {
      {"image", plan->dtype(), {plan->output_size().height, plan->output_size().width, 3}},
      {"label", DType::kI64, {}}};
  const uint64_t slot_bytes = SlotPool::SlotBytes(columns, options.batch_size);
  const RuntimeOptions& limits = runtime.options();
  Result<MemoryPlan> memory = PlanMemory(
      {.slot_bytes = slot_bytes,
       .depth = options.depth,
       .threads = limits.threads,
       .reads_in_flight = limits.reads_in_flight * static_cast<uint32_t>(limits.reader_threads)},
      runtime.budget().limit() - runtime.budget().used());
  if (!memory.ok()) return std::move(memory).error();

  Result<std::shared_ptr<SlotPool>> slots = SlotPool::Make({.columns = columns,
                                                            .batch_size = options.batch_size,
                                                            .working_slots = memory->depth,
                                                            .lent_slots = options.lent_batches},
                                                           runtime.budget());
  if (!slots.ok()) return std::move(slots).error();

  std::unique_ptr<Impl> impl(new Impl(std::move(options), *std::move(order), *std::move(plan),
                                      *memory, *std::move(slots)));
  for (SampleInFlight& sample : impl->samples_) {
    sample.read.path.reserve(PATH_MAX);
    if (Status s = sample.read.buffer.Grow(kReadBufferBytes); !s.ok()) return std::move(s).error();
  }
  return impl;
}

Loader::Impl::Impl(LoaderOptions options, EpochOrder order, Plan plan, MemoryPlan memory,
                   std::shared_ptr<SlotPool> slots)
    : options_(std::move(options)),
      runtime_(*options_.runtime),
      order_(std::move(order)),
      plan_(std::move(plan)),
      memory_(memory),
      slots_(std::move(slots)),
      samples_(memory.requests),
      free_samples_(memory.requests),
      counters_(static_cast<size_t>(runtime_.options().threads)) {
  for (SampleInFlight& sample : samples_) sample.read.buffer = GrowingBuffer(runtime_.budget());
  for (size_t i = 0; i < counters_.size(); ++i) {
    workspaces_.push_back(plan_.MakeWorkspace(runtime_.budget()));
  }
  StartAt(0);
}

// Order → reader: the next rows of the batches in production become read requests.
size_t Loader::Impl::Pull(std::span<ReadRequest*> requests) {
  if (stopped_.load(std::memory_order_relaxed) || TooFewFree()) return 0;
  size_t pulled = 0;
  while (pulled < requests.size()) {
    const std::optional<uint32_t> index = free_samples_.Take();
    if (!index) break;
    const std::optional<RowTicket> ticket = assembler_->Claim();
    if (!ticket) {
      free_samples_.Give(*index);
      break;
    }
    in_work_.fetch_add(1, std::memory_order_relaxed);
    SampleInFlight& next = samples_[*index];
    const OrderEntry entry = order_.At(ticket->slot->epoch, ticket->slot->index, ticket->row);
    next.ticket = *ticket;
    next.draw = {options_.seed, ticket->slot->epoch, entry.position};
    next.sample = options_.source->At(entry.sample);
    next.read.offset = next.sample.offset;
    next.read.length = next.sample.length;
    options_.source->PathOf(next.sample.file, next.read.path);
    requests[pulled++] = &next.read;
  }
  return pulled;
}

// Reader → worker.
void Loader::Impl::Finish(ReadRequest& read) {
  const auto index =
      static_cast<uint32_t>(reinterpret_cast<SampleInFlight*>(&read) - samples_.data());
  runtime_.executor().Submit({&Impl::Work, this, index});
}

// Worker → assembler: bytes become the pixels of their row.
void Loader::Impl::Work(void* loader, uint32_t index, int worker) {
  auto& self = *static_cast<Impl*>(loader);
  SampleInFlight& sample = self.samples_[index];
  const RowTicket ticket = sample.ticket;
  Status status = self.Decode(sample, worker);
  self.free_samples_.Give(index);
  self.assembler_->Finish(ticket, std::move(status));
  if (self.starved_.load(std::memory_order_seq_cst) && !self.TooFewFree()) {
    self.runtime_.reads().Kick();
  }
  self.in_work_.fetch_sub(1, std::memory_order_release);  // the last touch of this loader
}

Status Loader::Impl::Decode(SampleInFlight& sample, int worker) {
  if (stopped_.load(std::memory_order_relaxed)) return Error{Code::kCancelled, "stopped"};
  const uint64_t before = NowNanoseconds();
  const RowTicket& ticket = sample.ticket;
  StageTimes times;
  Status status = std::move(sample.read.status);
  if (status.ok()) {
    status = plan_.Apply({sample.read.buffer.data(), sample.read.size}, sample.draw,
                         *workspaces_[static_cast<size_t>(worker)], ticket.slot->Row(0, ticket.row),
                         times);
    if (!status.ok()) status = std::move(status).error().WithFile(sample.read.path);
  }
  *static_cast<int64_t*>(ticket.slot->Row(1, ticket.row)) = sample.sample.label;
  ticket.slot->sample_ids[ticket.row] = sample.sample.id;
  TrimBuffer(sample.read.buffer);
  counters_[static_cast<size_t>(worker)].Add(sample.read.size, times, NowNanoseconds() - before);
  return status;
}

// A buffer that has grown stays so while the budget is roomy; else a few large files would hold it.
void Loader::Impl::TrimBuffer(GrowingBuffer& buffer) {
  const MemoryBudget& budget = runtime_.budget();
  if (buffer.capacity() < 2 * kReadBufferBytes || budget.used() < budget.limit() / 2) return;
  buffer.Free();
  (void)buffer.Grow(kReadBufferBytes);  // fits: more than that has just been given back
}

// Reads are pulled many at a time, so that the reader thread wakes, and enters the kernel, once for
// many samples instead of once for each.
bool Loader::Impl::TooFewFree() {
  const uint32_t enough = (free_samples_.count() + 1) / 2;
  if (free_samples_.available() >= enough) {
    starved_.store(false, std::memory_order_seq_cst);
    return false;
  }
  starved_.store(true, std::memory_order_seq_cst);
  return free_samples_.available() < enough;  // looked at again: a worker may have missed the flag
}

Result<Batch> Loader::Impl::Next() {
  if (Status s = runtime_.CheckProcess(); !s.ok()) return std::move(s).error();
  if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
  if (std::exchange(epoch_ended_, false)) return Batch();
  if (assembler_->position() == LastBatch()) return Batch();
  if (!slots_->CanLend()) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "the caller holds " + std::to_string(slots_->lent()) +
                          " batches already, as many as lent_batches allows",
                 .advice = "Release batches before taking more, or raise lent_batches"};
  }
  if (Status s = Start(); !s.ok()) return std::move(s).error();
  Result<bool> reopened = assembler_->Reopen();
  if (!reopened.ok()) return std::move(reopened).error();
  if (*reopened) runtime_.reads().Kick();
  Result<Batch> batch = assembler_->Take();
  if (!batch.ok() && batch.error().code == Code::kCancelled) return batch;
  runtime_.reads().Kick();  // there is a batch's worth of rows to read now
  if (batch.ok()) delivered_.fetch_add(1, std::memory_order_relaxed);
  epoch_ended_ = assembler_->position() % batches_per_epoch() == 0;
  return batch;
}

Status Loader::Impl::Seek(uint64_t epoch, uint64_t index) {
  if (Status s = runtime_.CheckProcess(); !s.ok()) return s;
  if (epoch > kMostEpochs) {
    return Error{Code::kInvalidArgument, "Seek to epoch " + std::to_string(epoch) + "; at most " +
                                             std::to_string(kMostEpochs) + " is possible"};
  }
  if (index >= batches_per_epoch()) {
    return Error{Code::kInvalidArgument, "Seek to batch " + std::to_string(index) +
                                             " of an epoch that has " +
                                             std::to_string(batches_per_epoch())};
  }
  Halt();
  epoch_ended_ = false;
  StartAt(epoch * batches_per_epoch() + index);
  return {};
}

void Loader::Impl::StartAt(uint64_t batch) {
  std::lock_guard lock(lifecycle_);
  if (assembler_ != nullptr) past_wait_ns_ += assembler_->wait_ns();
  assembler_.reset();  // gives its slots back before the next one takes them
  assembler_ = std::make_unique<Assembler>(order_, slots_, memory_.depth, batch, LastBatch());
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
  assembler_.reset();
  slots_->Retire();
}

LoaderStats Loader::Impl::Stats() const {
  LoaderStats stats;
  for (const WorkerCounters& counters : counters_) counters.AddTo(stats);
  {
    std::lock_guard lock(lifecycle_);
    stats.wait_ns = past_wait_ns_ + assembler_->wait_ns();
  }
  stats.batches = delivered_;
  stats.read_cpu_ns = runtime_.reads().read_cpu_ns();
  stats.depth = memory_.depth;
  stats.lent_batches = slots_->lent();
  stats.slot_bytes = slots_->slot_bytes();
  stats.memory_used = runtime_.budget().used();
  stats.memory_peak = runtime_.budget().peak();
  stats.memory_budget = runtime_.budget().limit();
  stats.threads = runtime_.executor().concurrency();
  stats.threads_seen = runtime_.executor().threads_seen();
  stats.executor = runtime_.executor().name();
  stats.reader = runtime_.reader().kind == ReaderKind::kUring ? "uring" : "pread";
  stats.reader_reason = runtime_.reader().reason;
  stats.plan = plan_.Describe();
  return stats;
}

Loader::Position Loader::Impl::position() const {
  const uint64_t next = assembler_->position();
  return {next / batches_per_epoch(), next % batches_per_epoch()};
}

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Loader::~Loader() {
  if (!impl_->options().runtime->CheckProcess().ok()) (void)impl_.release();  // a forked child's
}

Result<std::unique_ptr<Loader>> Loader::Open(LoaderOptions options) {
  Result<std::unique_ptr<Impl>> impl = Impl::Wire(std::move(options));
  if (!impl.ok()) return std::move(impl).error();
  return std::unique_ptr<Loader>(new Loader(*std::move(impl)));
}

Result<Batch> Loader::Next() { return impl_->Next(); }
Status Loader::Seek(uint64_t epoch, uint64_t index) { return impl_->Seek(epoch, index); }
Loader::Position Loader::position() const { return impl_->position(); }
void Loader::Stop() {
  if (impl_->options().runtime->CheckProcess().ok())
    impl_->Stop();  // nothing runs in a fork's child
}

LoaderStats Loader::Stats() const {
  return impl_->options().runtime->CheckProcess().ok() ? impl_->Stats() : LoaderStats();
}

uint64_t Loader::batches_per_epoch() const { return impl_->batches_per_epoch(); }
const LoaderOptions& Loader::options() const { return impl_->options(); }

}  // namespace stoker
