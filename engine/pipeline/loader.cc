#include "engine/pipeline/loader.h"

#include <limits.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "engine/core/trace.h"
#include "engine/pipeline/check_options.h"
#include "engine/pipeline/loader_impl.h"
#include "gpu/device_pinning.h"

namespace stoker {

namespace {

// Room for the crop index of a photograph of 400 KB: few have more, so that the steady state
// allocates next to nothing.
constexpr size_t kCropIndexBytes = 8 << 10;

// What a batch consists of.
std::vector<ColumnSpec> ColumnsOf(const SampleSource& source, const std::optional<Plan>& plan) {
  std::vector<ColumnSpec> columns;
  for (const ArrayColumn& array : source.arrays()) {
    columns.push_back({array.name, array.dtype, array.row_shape});
  }
  if (columns.empty()) columns = {{"image", DType::kU8, {}}, {"label", DType::kI64, {}}};
  if (plan) {
    columns[0].dtype = plan->dtype();
    columns[0].row_shape = plan->row_shape();
  }
  if (plan && plan->work_bytes() != 0) {
    columns.push_back({"work", DType::kU8, {static_cast<int64_t>(plan->work_bytes())}});
  }
  return columns;
}

SlotPool::Options SlotOptionsOf(const LoaderOptions& options, std::vector<ColumnSpec> columns,
                                int depth) {
  SlotPool::Options slots;
  slots.columns = std::move(columns);
  slots.batch_size = options.batch_size;
  slots.working_slots = depth;
  slots.lent_slots = options.lent_batches;
  slots.lent = options.lent;
  slots.one_slab = options.one_slab;
  if (options.device == nullptr) return slots;
  slots.pinning = std::make_shared<DevicePinning>(options.device);
  slots.pinned_lent_slots =
      options.lent_batches != 0 ? std::min(options.lent_batches, 64) : SlotPool::kSpareSlots;
  return slots;
}

// Small rows are copied many at a time, so that handing them out costs little beside the copying.
uint32_t RunOf(const LoaderOptions& options) {
  constexpr size_t kRunBytes = 64 << 10;
  if (!CopiesRows(options)) return 1;
  size_t bytes = 0;
  for (const ArrayColumn& array : options.source->arrays()) bytes += array.row_bytes();
  return static_cast<uint32_t>(std::clamp<size_t>(kRunBytes / bytes, 1, options.batch_size));
}

}  // namespace

// The stages, in the order of the picture in the README:
// source → order → (draw) → reader → worker → (mix) → assembler → consumer.
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

  std::optional<Plan> plan;
  if (!CopiesRows(options)) {
    Result<Plan> compiled =
        Plan::Compile(options.transforms, {.dtype = options.dtype,
                                           .layout = options.layout,
                                           .exif_orientation = options.exif_orientation,
                                           .read_later = true,
                                           .finish_on_device = options.finish_on_device,
                                           .limits = options.limits});
    if (!compiled.ok()) return std::move(compiled).error();
    plan = *std::move(compiled);
  }

  std::vector<ColumnSpec> columns = ColumnsOf(*options.source, plan);
  std::optional<Mixer> mixer;
  if (options.mix) {
    Result<Mixer> made = Mixer::Make(options, columns);
    if (!made.ok()) return std::move(made).error();
    mixer = *std::move(made);
  }

  const uint64_t slot_bytes = SlotPool::SlotBytes(columns, options.batch_size, options.one_slab);
  const RuntimeOptions& limits = runtime.options();
  std::lock_guard planning(runtime.planning());
  Result<MemoryPlan> memory = PlanMemory(
      {.slot_bytes = slot_bytes,
       .depth = options.depth,
       .threads = limits.threads,
       .reads_in_flight = limits.reads_in_flight * static_cast<uint32_t>(limits.reader_threads),
       .workspace_bytes = kWorkspaceBytes + (plan ? plan->tile_bytes() : 0)},
      runtime.budget().limit(), {}, runtime.budget().used());
  if (!memory.ok()) return std::move(memory).error();

  Result<std::shared_ptr<SlotPool>> slots =
      SlotPool::Make(SlotOptionsOf(options, columns, memory->depth), runtime.budget());
  if (!slots.ok()) return std::move(slots).error();

  std::unique_ptr<Impl> impl(new Impl(std::move(options), *std::move(order), std::move(plan),
                                      std::move(mixer), *memory, *std::move(slots)));
  if (impl->in_memory_) return impl;  // and needs no buffers to read into
  for (SampleInFlight& sample : impl->samples_) {
    sample.read.path.reserve(PATH_MAX);
    sample.crop_index.reserve(kCropIndexBytes);
    if (Status s = sample.read.buffer.Grow(kReadBufferBytes); !s.ok()) return std::move(s).error();
  }
  return impl;
}

Loader::Impl::Impl(LoaderOptions options, EpochOrder order, std::optional<Plan> plan,
                   std::optional<Mixer> mixer, MemoryPlan memory, std::shared_ptr<SlotPool> slots)
    : options_(std::move(options)),
      runtime_(*options_.runtime),
      order_(std::move(order)),
      plan_(std::move(plan)),
      mixer_(std::move(mixer)),
      memory_(memory),
      in_memory_(!options_.source->arrays().empty()),
      run_(RunOf(options_)),
      slots_(std::move(slots)),
      samples_(memory.requests),
      free_samples_(memory.requests, IndexSet::Begin::kFull),
      ready_samples_(memory.requests, IndexSet::Begin::kEmpty),
      counters_(static_cast<size_t>(runtime_.options().threads)) {
  for (SampleInFlight& sample : samples_) sample.read.buffer = GrowingBuffer(runtime_.budget());
  for (size_t i = 0; plan_ && i < counters_.size(); ++i) {
    workspaces_.push_back(plan_->MakeWorkspace(runtime_.budget()));
  }
  StartAt({}, Schedule::kEpochs);
}

// Order → reader: the next rows of the batches in production become read requests.
size_t Loader::Impl::Pull(std::span<ReadRequest*> requests) {
  if (in_memory_) SubmitRuns();
  if (in_memory_ || stopped_.load(std::memory_order_relaxed) || TooFewFree()) return 0;
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
  ready_samples_.Give(index);
  runtime_.executor().Submit({&Impl::Work, this, index});
}

void Loader::Impl::Work(void* loader, uint32_t index, int worker) {
  auto& self = *static_cast<Impl*>(loader);
  if (self.ready_samples_.TakeThis(index)) {  // else a worker has taken it together with others
    if (self.stopped_.load(std::memory_order_relaxed)) {
      self.EndSample(index, Error{Code::kCancelled, "stopped"}, worker);
    } else if (self.in_memory_) {
      self.CopyRun(index, worker);
    } else {
      self.Decode(index, worker);
    }
  }
  self.in_work_.fetch_sub(1, std::memory_order_release);  // the last touch of this loader
}

// What a worker decodes in one go: the sample that its task brought, and others that are ready,
// two in turns. Not for ever, for other loaders have tasks too.
class Loader::Impl::ReadySamples final : public ImageFeed {
 public:
  ReadySamples(Impl& loader, uint32_t first, int worker)
      : loader_(loader),
        worker_(worker),
        workspace_(*loader.workspaces_[static_cast<size_t>(worker)]),
        counters_(loader.counters_[static_cast<size_t>(worker)]),
        next_(first) {}

  void Decode() { loader_.plan_->ApplyAll(*this, workspace_, times_); }

  std::optional<EncodedImage> Next() override {
    while (const std::optional<uint32_t> index = Take()) {
      ++taken_;
      SampleInFlight& sample = loader_.samples_[*index];
      if (sample.read.status.ok()) return Encoded(*index);
      Done(*index, std::move(sample.read.status));
    }
    return std::nullopt;
  }

  void Done(uint32_t index, Status status) override {
    SampleInFlight& sample = loader_.samples_[index];
    const RowTicket& ticket = sample.ticket;
    if (!status.ok()) status = std::move(status).error().WithFile(sample.read.path);
    ticket.slot->sample_ids[ticket.row] = sample.sample.id;
    Status labelled = WriteLabel(sample);
    if (status.ok()) status = std::move(labelled);
    Count(sample.read.size);
    loader_.TrimBuffer(sample.read.buffer);
    loader_.EndSample(index, std::move(status), worker_);
    if (loader_.mixer_) since_ = NowNanoseconds();  // what it mixed is counted already
  }

 private:
  static constexpr int kMost = 8;

  Status WriteLabel(const SampleInFlight& sample) const {
    const int64_t label = sample.sample.label;
    Slot& slot = *sample.ticket.slot;
    if (loader_.mixer_)
      return loader_.mixer_->WriteLabel(label, sample.sample.id, slot, sample.ticket.row);
    *static_cast<int64_t*>(slot.Row(1, sample.ticket.row)) = label;
    return {};
  }

  std::optional<uint32_t> Take() {
    if (next_) return std::exchange(next_, std::nullopt);
    const bool enough = taken_ == kMost || loader_.stopped_.load(std::memory_order_relaxed);
    return enough || !loader_.ManyReady() ? std::nullopt : loader_.ready_samples_.Take();
  }

  EncodedImage Encoded(uint32_t index) const {
    SampleInFlight& sample = loader_.samples_[index];
    // Whatever the index says, one that is larger than its photograph is not worth its memory.
    const uint64_t most = std::max<uint64_t>(sample.read.size, kCropIndexBytes);
    loader_.options_.source->ReadCropIndex(sample.sample.id, most, sample.crop_index);
    return {index,
            {sample.read.buffer.data(), sample.read.size},
            sample.draw,
            sample.ticket.slot->Row(0, sample.ticket.row),
            sample.crop_index,
            loader_.WorkOf(*sample.ticket.slot, sample.ticket.row)};
  }

  // Before its batch can be delivered.
  void Count(uint64_t bytes) {
    const uint64_t now = NowNanoseconds();
    counters_.Add(1, bytes, std::exchange(times_, {}), now - std::exchange(since_, now));
    counters_.SetPaths(PathsOf(workspace_));
  }

  Impl& loader_;
  const int worker_;
  Workspace& workspace_;
  WorkerCounters& counters_;
  std::optional<uint32_t> next_;
  int taken_ = 0;
  StageTimes times_;  // not yet counted; and since when
  uint64_t since_ = NowNanoseconds();
};

// Where it is written what a device has yet to do to a row; null: nothing is left to one.
void* Loader::Impl::WorkOf(const Slot& slot, uint32_t row) const {
  return plan_->work_bytes() == 0 ? nullptr : slot.Row(slot.columns.size() - 1, row);
}

// Bytes become the pixels of their rows.
void Loader::Impl::Decode(uint32_t first, int worker) {
  const TraceSpan span(runtime_.trace(), "stoker.decode");
  ReadySamples(*this, first, worker).Decode();
}

// Enough for every worker to have one.
bool Loader::Impl::ManyReady() const {
  return ready_samples_.available() >= static_cast<uint32_t>(runtime_.options().threads);
}

// Worker → assembler. Whoever finishes the last row of a batch mixes it.
void Loader::Impl::EndSample(uint32_t index, Status status, int worker) {
  const RowTicket ticket = samples_[index].ticket;
  free_samples_.Give(index);
  if (starved_.load(std::memory_order_seq_cst) && !TooFewFree()) runtime_.reads().Kick();
  const Assembler::Batched batched = assembler_->Finish(ticket, std::move(status));
  if (batched == Assembler::Batched::kRowsMissing) return;
  if (mixer_ && batched == Assembler::Batched::kWhole) MixBatch(*ticket.slot, worker);
  assembler_->Complete(ticket);
}

void Loader::Impl::MixBatch(Slot& slot, int worker) {
  const TraceSpan span(runtime_.trace(), "stoker.mix", slot.epoch, slot.index);
  const uint64_t before = NowNanoseconds();
  const OrderEntry first = order_.At(slot.epoch, slot.index, 0);
  mixer_->Mix(slot, {options_.seed, slot.epoch, first.position});
  const uint64_t spent = NowNanoseconds() - before;
  counters_[static_cast<size_t>(worker)].Add(0, 0, {.mix_ns = spent}, spent);
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

Result<Batch> Loader::Impl::Next(const Interrupt& interrupt) {
  if (Status s = runtime_.CheckProcess(); !s.ok()) return std::move(s).error();
  if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
  if (std::exchange(epoch_ended_, false)) return Batch();
  const std::optional<BatchName> next = assembler_->position();
  if (!next) return Batch();
  if (!slots_->CanLend()) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "the caller holds " + std::to_string(slots_->account().batches()) +
                          " batches already, as many as lent_batches allows",
                 .advice = "Release batches before taking more, or raise lent_batches"};
  }
  if (Status s = Start(); !s.ok()) return std::move(s).error();
  Result<bool> reopened = assembler_->Reopen();
  if (!reopened.ok()) return std::move(reopened).error();
  if (*reopened) runtime_.reads().Kick();
  Result<Batch> batch = Take(interrupt);
  if (!batch.ok() && batch.error().code == Code::kCancelled) return batch;
  runtime_.reads().Kick();  // there is a batch's worth of rows to read now
  if (batch.ok()) delivered_.fetch_add(1, std::memory_order_relaxed);
  ++passed_;
  const bool last = next->index + 1 == batches_per_epoch();
  after_last_ = last ? BatchName{next->epoch + 1, 0} : BatchName{next->epoch, next->index + 1};
  epoch_ended_ = last && assembler_->schedule() != Schedule::kAppended;
  return batch;
}

Result<Batch> Loader::Impl::Take(const Interrupt& interrupt) {
  const TraceSpan span(runtime_.trace(), "stoker.wait");
  return assembler_->Take(interrupt);
}

}  // namespace stoker
