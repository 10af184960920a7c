#include "engine/loader/producer.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/trace.h"
#include "core/try.h"
#include "engine/loader/check_options.h"
#include "engine/loader/producer_impl.h"
#include "engine/loader/producer_parts.h"

namespace stoker {

namespace {

// What it took to fill a row.
RowCost CostOf(const SampleTimes& times, uint32_t reads_in_flight, uint64_t work_ns) {
  RowCost cost{.work_ns = work_ns};
  if (times.begun_ns != 0) cost.longest_ns = times.done_ns - times.begun_ns;
  if (reads_in_flight == 0) return cost;
  cost.read_ns = times.read_ns - times.claimed_ns;
  cost.reads = 1;
  cost.reads_in_flight = reads_in_flight;
  return cost;
}

}  // namespace

// The stages, in the order of the picture in the README:
// source → order → (draw) → reader → worker → (mix) → assembler → consumer.
Result<std::unique_ptr<Producer::Impl>> Producer::Impl::Wire(LoaderOptions options,
                                                             const ProducerOptions& own) {
  TRY(CheckOptions(options));
  if (options.runtime == nullptr) {
    ASSIGN_OR_RETURN(options.runtime, Runtime::Default());
  }
  Runtime& runtime = *options.runtime;
  TRY(runtime.CheckProcess());

  ASSIGN_OR_RETURN(EpochOrder order, EpochOrder::Make(OrderOptionsOf(options)));

  std::optional<Plan> plan;
  if (!CopiesRows(options)) {
    Result<Plan> compiled =
        Plan::Compile(options.transforms, {.dtype = options.dtype,
                                           .layout = options.layout,
                                           .exif_orientation = options.exif_orientation,
                                           .read_later = true,
                                           .finish_on_device = own.finish_on_device,
                                           .limits = options.limits});
    if (!compiled.ok()) return std::move(compiled).error();
    plan = *std::move(compiled);
  }

  std::vector<ColumnSpec> columns = ColumnsOf(*options.source, plan);
  std::optional<Mixer> mixer;
  if (options.mix) {
    ASSIGN_OR_RETURN(mixer, Mixer::Make(options, own.finish_on_device, columns));
  }

  const uint64_t slot_bytes = SlotPool::SlotBytes(columns, options.batch_size, own.one_slab);
  const RuntimeOptions& limits = runtime.options();
  std::lock_guard planning(runtime.planning());
  Result<std::unique_ptr<MemoryAccounts::Member>> memory = runtime.memory().Join(
      {.slot_bytes = slot_bytes,
       .depth = options.depth,
       .threads = limits.threads,
       .reads_in_flight = limits.reads_in_flight * static_cast<uint32_t>(limits.reader_threads),
       .most_depth = MostDepth(options, own, limits),
       .workspace_bytes = kWorkspaceBytes + (plan ? plan->tile_bytes() : 0),
       .at_once = own.pinned_for != nullptr});
  if (!memory.ok()) return std::move(memory).error();

  const SlotPool::Options of_slots = SlotOptionsOf(options, own, columns, (*memory)->plan());
  const auto make_slots = [&] { return SlotPool::Make(of_slots, runtime.memory().batches()); };
  Result<std::shared_ptr<SlotPool>> slots = make_slots();
  if (!slots.ok() && slots.error().wanted_bytes != 0) {  // other loaders' samples have it
    runtime.postponed().Alone([&] { slots = make_slots(); });
  }
  if (!slots.ok()) return std::move(slots).error();

  std::unique_ptr<Impl> impl(new Impl(std::move(options), std::move(order), std::move(plan),
                                      std::move(mixer), *std::move(memory), *std::move(slots)));
  runtime.postponed().Join(*impl);
  return impl;
}

Producer::Impl::Impl(LoaderOptions options, EpochOrder order, std::optional<Plan> plan,
                     std::optional<Mixer> mixer, std::unique_ptr<MemoryAccounts::Member> memory,
                     std::shared_ptr<SlotPool> slots)
    : options_(std::move(options)),
      runtime_(*options_.runtime),
      order_(std::move(order)),
      plan_(std::move(plan)),
      mixer_(std::move(mixer)),
      memory_(std::move(memory)),
      in_memory_(!options_.source->arrays().empty()),
      trace_(runtime_.trace(), *options_.source),
      run_(RunOf(options_)),
      slots_(std::move(slots)),
      samples_(memory_->plan().requests, runtime_.memory().samples(), in_memory_),
      at_work_(static_cast<uint32_t>(runtime_.options().threads)),
      counters_(static_cast<size_t>(runtime_.options().threads)),
      paces_(counters_.size()),
      most_(MostOf(runtime_, memory_->plan())),
      tenant_(runtime_.tenants().Join(
          options_.weight, {.workers = 1, .batch_bytes = memory_->plan().claim.least_batches})),
      tuner_(TunerOptionsOf(options_, runtime_), Granted()) {
  MemoryBudget& samples = runtime_.memory().samples();
  for (size_t i = 0; plan_ && i < counters_.size(); ++i) {
    workspaces_.push_back(plan_->MakeWorkspace(samples));
  }
  settings_.depth = memory_->plan().depth;
  Settle();
  StartAt({}, Schedule::kEpochs);
}

// Order → reader: the next rows of the batches in production become read requests.
size_t Producer::Impl::Pull(std::span<ReadRequest*> requests) {
  if (stopped_.load(std::memory_order_relaxed)) return 0;
  if (!runtime_.postponed().Begin()) return PullTurn(requests);
  const size_t pulled = PullReads(requests);
  runtime_.postponed().End();
  return pulled;
}

size_t Producer::Impl::PullReads(std::span<ReadRequest*> requests) {
  trace_.Samples(samples_.reading(), samples_.ready());
  if (in_memory_) SubmitRuns();
  const bool behind_workers = samples_.BehindWorkers();
  if (in_memory_ || samples_.TooFewFree()) return 0;
  const uint64_t now = NowNanoseconds();
  size_t pulled = 0;
  while (pulled < requests.size() && samples_.MayRead()) {
    const std::optional<uint32_t> index = samples_.Take();
    if (!index) break;
    const std::optional<RowTicket> ticket = assembler_->Claim();
    if (!ticket) {
      samples_.Give(*index);
      break;
    }
    BeginWork();
    SampleInFlight& next = samples_[*index];
    samples_.BeginRead(*index);
    const OrderEntry entry = order_.At(ticket->slot->epoch, ticket->slot->index, ticket->row);
    next.ticket = *ticket;
    next.draw = {options_.seed, ticket->slot->epoch, entry.position};
    next.sample = options_.source->At(entry.sample);
    next.path.Claim(now, behind_workers);
    next.read.offset = next.sample.offset;
    next.read.length = next.sample.length;
    options_.source->PathOf(next.sample.file, next.read.path);
    requests[pulled++] = &next.read;
  }
  return pulled;
}

// Reader → worker.
void Producer::Impl::Finish(ReadRequest& read) {
  samples_.EndRead();
  Submit(samples_.IndexOf(read));
}

void Producer::Impl::Submit(uint32_t index) {
  SampleTimes& times = samples_[index].path.times();
  times.read_ns = in_memory_ ? times.claimed_ns : NowNanoseconds();
  samples_.SetReady(index);
  SendWorker();
}

void Producer::Impl::BeginWork() {
  runtime_.postponed().Another();
  in_work_.fetch_add(1, std::memory_order_relaxed);
}

// The last of them is the last touch of this loader.
void Producer::Impl::EndWork() {
  runtime_.postponed().End();
  in_work_.fetch_sub(1, std::memory_order_release);
}

void Producer::Impl::SendWorker() {
  BeginWork();
  runtime_.executor().Submit({&Impl::Work, this, 0});
}

// For every sample that is ready somebody has been sent, or turned away at the turnstile.
void Producer::Impl::Work(void* loader, uint32_t, int worker) {
  auto& self = *static_cast<Impl*>(loader);
  if (self.at_work_.Enter()) {
    self.WorkOn(worker);
    if (self.at_work_.Leave()) self.SendWorker();
  }
  self.EndWork();
}

void Producer::Impl::WorkOn(int worker) {
  const std::optional<uint32_t> first = samples_.TakeReady();
  if (!first) return;  // others have taken it together with theirs
  WorkerCounters& counters = counters_[static_cast<size_t>(worker)];
  if (!counters.MayClock()) return WorkFrom(*first, worker);
  const CoreClock clock;
  WorkFrom(*first, worker);
  if (const std::optional<CoreTime> time = clock.Read()) counters.AddClocked(*time);
}

void Producer::Impl::WorkFrom(uint32_t first, int worker) {
  if (stopped_.load(std::memory_order_relaxed)) {
    EndSample(first, {}, Error{Code::kCancelled, "stopped"}, worker);
  } else if (in_memory_) {
    CopyRun(first, worker);
  } else {
    Decode(first, worker);
  }
}

// What a worker decodes in one go: a sample, and others that are ready, two in turns. Not for ever,
// for other loaders have tasks too.
class Producer::Impl::ReadySamples final : public ImageFeed {
 public:
  ReadySamples(Impl& loader, uint32_t first, int worker)
      : loader_(loader),
        worker_(worker),
        workspace_(*loader.workspaces_[static_cast<size_t>(worker)]),
        counters_(loader.counters_[static_cast<size_t>(worker)]),
        pace_(loader.paces_[static_cast<size_t>(worker)]),
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
    if (loader_.MustWait(sample, status)) {
      pace_.End(sample.path.times(), NowNanoseconds());
      return loader_.Postpone(index);
    }
    const RowTicket& ticket = sample.ticket;
    if (!status.ok()) status = std::move(status).error().WithFile(sample.read.path);
    ticket.slot->sample_ids[ticket.row] = sample.sample.id;
    Status labelled = WriteLabel(sample);
    if (status.ok()) status = std::move(labelled);
    const uint64_t work = Count(sample.read.size);
    pace_.End(sample.path.times(), since_);
    loader_.TrimBuffer(sample.read.buffer);
    loader_.EndSample(index, work, std::move(status), worker_);
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
    return enough || !loader_.ManyReady() ? std::nullopt : loader_.samples_.TakeReady();
  }

  EncodedImage Encoded(uint32_t index) {
    SampleInFlight& sample = loader_.samples_[index];
    pace_.Begin(sample.path.times(), NowNanoseconds());
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

  // Before its batch can be delivered. Returns the nanoseconds since the sample counted last.
  uint64_t Count(uint64_t bytes) {
    const uint64_t now = NowNanoseconds();
    const uint64_t work = now - std::exchange(since_, now);
    counters_.Add(1, bytes, std::exchange(times_, {}), work);
    counters_.SetPaths(PathsOf(workspace_));
    return work;
  }

  Impl& loader_;
  const int worker_;
  Workspace& workspace_;
  WorkerCounters& counters_;
  WorkerPace& pace_;
  std::optional<uint32_t> next_;
  int taken_ = 0;
  StageTimes times_;  // not yet counted; and since when
  uint64_t since_ = NowNanoseconds();
};

// Where it is written what a device has yet to do to a row; null: nothing is left to one.
void* Producer::Impl::WorkOf(const Slot& slot, uint32_t row) const {
  return plan_->work_bytes() == 0 ? nullptr : slot.Row(slot.columns.size() - 1, row);
}

// Bytes become the pixels of their rows.
void Producer::Impl::Decode(uint32_t first, int worker) {
  const TraceSpan span(runtime_.trace(), "stoker.decode");
  ReadySamples(*this, first, worker).Decode();
  TrimWorkspace(*workspaces_[static_cast<size_t>(worker)]);
}

// Enough for every worker to have one.
bool Producer::Impl::ManyReady() const { return samples_.ready() >= at_work_.limit(); }

// Worker → assembler. Whoever finishes the last row of a batch mixes it.
void Producer::Impl::EndSample(uint32_t index, uint64_t work_ns, Status status, int worker) {
  const RowTicket ticket = samples_[index].ticket;
  const SamplePath path = samples_[index].path;
  const uint32_t reads_in_flight = samples_[index].reads_in_flight;
  if (std::exchange(samples_[index].alone, false)) runtime_.postponed().EndTurn();
  samples_.Give(index);
  if (samples_.starved() && !samples_.TooFewFree()) runtime_.reads().Kick();
  const Assembler::Batched batched =
      assembler_->Finish(ticket, CostOf(path.times(), reads_in_flight, work_ns), std::move(status));
  if (batched != Assembler::Batched::kRowsMissing) {
    uint64_t mixed_ns = 0;
    if (mixer_ && batched == Assembler::Batched::kWhole) mixed_ns = MixBatch(*ticket.slot, worker);
    assembler_->Complete(ticket, path, mixed_ns);
  }
  EndWork();
}

uint64_t Producer::Impl::MixBatch(Slot& slot, int worker) {
  const TraceSpan span(runtime_.trace(), "stoker.mix", slot.epoch, slot.index);
  const uint64_t before = NowNanoseconds();
  const OrderEntry first = order_.At(slot.epoch, slot.index, 0);
  mixer_->Mix(slot, {options_.seed, slot.epoch, first.position});
  const uint64_t spent = NowNanoseconds() - before;
  counters_[static_cast<size_t>(worker)].Add(0, 0, {.mix_ns = spent}, spent);
  return spent;
}

Result<Batch> Producer::Impl::Next(const Interrupt& interrupt) {
  TRY(runtime_.CheckProcess());
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
  TRY(Start());
  ASSIGN_OR_RETURN(bool reopened, assembler_->Reopen());
  if (reopened) runtime_.reads().Kick();
  Result<Batch> batch = Take(interrupt);
  if (!batch.ok() && batch.error().code == Code::kCancelled) return batch;
  Learn(assembler_->last());
  runtime_.reads().Kick();  // there is a batch's worth of rows to read now
  if (batch.ok()) delivered_.fetch_add(1, std::memory_order_relaxed);
  ++passed_;
  const bool last = next->index + 1 == batches_per_epoch();
  after_last_ = last ? BatchName{next->epoch + 1, 0} : BatchName{next->epoch, next->index + 1};
  epoch_ended_ = last && assembler_->schedule() != Schedule::kAppended;
  return batch;
}

Result<Batch> Producer::Impl::Take(const Interrupt& interrupt) {
  const BatchName next = assembler_->position().value_or(BatchName());
  const TraceSpan span(runtime_.trace(), "stoker.wait", next.epoch, next.index);
  return assembler_->Take(interrupt);
}

}  // namespace stoker
