#include "engine/production/producer.h"

#include <string>
#include <utility>

#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "core/time/trace.h"
#include "engine/options/check_options.h"
#include "engine/runtime/runtime.h"
#include "transforms/plan/explain.h"

namespace stoker {

Result<std::unique_ptr<Producer>> Producer::Open(LoaderOptions options,
                                                 std::optional<ProducerOptions> own) {
  TRY(CheckOptions(options));
  if (!own) {
    ASSIGN_OR_RETURN(own, ProducerOptionsOf(options));
  }
  if (own->bad == nullptr) {
    ASSIGN_OR_RETURN(own->bad,
                     BadSampleLog::Open(options.bad_samples_file, options.max_bad_fraction));
  }
  if (options.runtime == nullptr) {
    ASSIGN_OR_RETURN(options.runtime, Runtime::Default());
  }
  Runtime& runtime = *options.runtime;  // owns the reader threads and the workers
  TRY(runtime.CheckProcess());
  const SampleSource& source = *options.source;
  ASSIGN_OR_RETURN(Sampler sampler, Sampler::Make(SamplerOptionsOf(options)));
  ASSIGN_OR_RETURN(std::optional<Plan> plan, PlanOf(options, *own));
  std::optional<MapCaller> map;
  if (options.map != nullptr) {
    ASSIGN_OR_RETURN(map, MapCaller::Of(*options.map));
  }
  ASSIGN_OR_RETURN(std::vector<ColumnSpec> columns, ColumnsOf(source, plan, map ? &*map : nullptr));
  if (options.to_device) TRY(CheckHasNoStrings(source, columns));
  std::optional<Mixer> mixer;
  if (options.mix) {
    ASSIGN_OR_RETURN(mixer, Mixer::Make(options, own->defer_to_device, columns));
  }
  ASSIGN_OR_RETURN(ReservedMemory memory, ReserveMemory(options, *own, columns, plan));
  return std::unique_ptr<Producer>(
      new Producer(std::move(options), std::move(sampler), std::move(plan), std::move(mixer),
                   std::move(map), std::move(own->bad), std::move(own->cache), std::move(memory)));
}

// In the order of the picture in the README, from right to left, since each stage is given the one
// that it hands on to. A loader with a device has a stager after the assembler.
Producer::Producer(LoaderOptions options, Sampler sampler, std::optional<Plan> plan,
                   std::optional<Mixer> mixer, std::optional<MapCaller> map,
                   std::shared_ptr<BadSampleLog> bad, std::shared_ptr<SampleCache> cache,
                   ReservedMemory memory)
    : options_(std::move(options)),
      runtime_(*options_.runtime),
      sampler_(std::move(sampler)),
      own_reads_(runtime_.ReadsOf(*options_.source)),
      reads_(own_reads_ != nullptr ? *own_reads_ : runtime_.reads()),
      trace_(runtime_.trace(), *options_.source),
      slots_(std::move(memory.slots)),
      samples_(memory.lease->plan().requests, memory.lease->samples(),
               options_.source->in_memory()),
      cache_(std::move(cache)),
      map_(std::move(map)),
      assembler_(sampler_, slots_, /*depth=*/0, memory.lease->plan().max_depth, SequenceFrom({})),
      maps_(MakeMaps()),
      decoder_(
          options_, sampler_, std::move(plan), std::move(mixer), map_ ? &*map_ : nullptr,
          slots_->columns(), cache_.get(), samples_, memory.lease->samples(),
          [this](const Error& error) {
            return memory_->Refusal(error, decoder_.plan() ? decoder_.plan()->tile_bytes() : 0);
          },
          runtime_.options().threads),
      memory_(std::move(memory.lease)),
      finisher_(samples_, assembler_, decoder_, maps_.get(), *memory_, reads_,
                /*wakes_early=*/options_.source->calls() != 0, runtime_.trace()),
      workers_(samples_, *memory_, runtime_.executor(), &Producer::Turn, this),
      feeder_(options_, sampler_, decoder_.plan(),
              RunOf(options_, map_ && map_->calls() == 0, runtime_.options().threads),
              {samples_, assembler_, workers_, finisher_, *memory_, reads_, cache_.get(),
               lifecycle_, trace_}),
      lifecycle_(WorkOfStages()),
      bad_(
          options_.on_bad, std::move(bad), sampler_,
          options_.to_device ? BadSamples::Counts::kWhenDelivered : BadSamples::Counts::kWhenTaken),
      stalls_(static_cast<uint64_t>(runtime_.options().stall_seconds * 1e9)),
      unfinished_(*options_.source, samples_, map_ ? &*map_ : nullptr, maps_.get()),
      settings_(TunerOptionsOf(options_, runtime_), LimitsOf(options_, runtime_, memory_->plan()),
                *memory_, *slots_, trace_, [this](const TunerSettings& tuned) { Apply(tuned); }) {
  memory_->OnShortage([this] {
    samples_.FreeBuffers();  // waiting samples have none
    decoder_.FreeWorkspaces();
  });
  if (maps_ != nullptr) maps_->Open();
  settings_.Start();  // opens the first batches
}

std::unique_ptr<MapThreads> Producer::MakeMaps() {
  if (!map_ || map_->calls() == 0) return nullptr;
  return std::make_unique<MapThreads>(
      *map_, *slots_, runtime_.trace(), [this](const MapThreads::WholeBatch& batch, Status status) {
        assembler_.Complete(batch.ticket, batch.last_row, batch.cost, std::move(status));
      });
}

Lifecycle::Work Producer::WorkOfStages() {
  return {.begin = [this]() -> Status {
            if (maps_ != nullptr) TRY(maps_->Start());
            return reads_.Attach(&feeder_);  // reader threads call Feeder::Pull
          },
          // Whole batches that wait for the program's function are dropped first, because they may
          // wait for an earlier batch whose samples are given up here.
          .give_up =
              [this] {
                if (maps_ != nullptr) maps_->Close();
                feeder_.DropWaiting();
              },
          .no_more = [this] { return reads_.TryDetach(&feeder_, kInterruptInterval); },
          .complete =
              [this] {
                return memory_->TryDrain(kInterruptInterval) &&
                       (maps_ == nullptr || maps_->Wait(kInterruptInterval));
              }};
}

// ---- The way of samples. Feeder has the first half: order → reader → worker.

// Worker: bytes → rows. The decoder pulls further samples from here, and pushes each one back.
void Producer::Turn(void* producer, uint32_t first, int worker) {
  auto& self = *static_cast<Producer*>(producer);
  if (self.lifecycle_.stopped()) {
    return self.finisher_.End(first, 0, Error{Code::kCancelled, "stopped"}, worker);
  }
  const TraceSpan span(self.runtime_.trace(), "stoker.decode");
  self.decoder_.Turn(first, worker, self);
  if (self.memory_->scarce()) self.decoder_.Trim(worker);
}

std::optional<uint32_t> Producer::TakeReady() {
  return lifecycle_.stopped() ? std::nullopt : workers_.TakeFurther();
}

// Worker → assembler, or back to the reader.
void Producer::Done(uint32_t sample, SampleOutcome outcome, int worker) {
  using What = SampleOutcome::What;
  if (outcome.what == What::kReadAgain) return feeder_.ReadAgain(sample);
  if (outcome.what == What::kNoMemory && !lifecycle_.stopped()) return feeder_.Postpone(sample);
  if (outcome.what == What::kUnusable) {
    Error error = std::move(outcome.status).error();
    const OnBad action = ActionOn(sample, error);
    if (action == OnBad::kSubstitute) return feeder_.Substitute(sample);
    outcome.status = action == OnBad::kDrop ? Status() : std::move(error);
  }
  finisher_.End(sample, outcome.work_ns, std::move(outcome.status), worker);
}

OnBad Producer::ActionOn(uint32_t index, Error& error) {
  if (lifecycle_.ending()) return OnBad::kFail;
  const SampleInFlight& sample = samples_[index];
  std::optional<BadRow> bad =
      bad_.Judge(sample.read.sample, sample.ticket.row, sample.substitutes, error);
  if (!bad) return OnBad::kFail;
  const OnBad action = bad->action;
  assembler_.AddBadRow(sample.ticket, *std::move(bad));
  return action;
}

// Assembler → consumer.
Result<Batch> Producer::Next(const Interrupt& interrupt) {
  TRY(runtime_.CheckProcess());
  if (lifecycle_.stopped()) return Error{Code::kCancelled, "the loader was stopped"};
  if (std::exchange(epoch_ended_, false)) return Batch();
  const std::optional<BatchName> next = assembler_.position();
  if (!next) return Batch();
  if (!slots_->CanLend()) return TooManyLent();
  TRY(lifecycle_.Start());
  ASSIGN_OR_RETURN(const bool reopened, assembler_.Reopen());
  if (reopened) reads_.Wake();
  Result<Batch> batch = [&] {
    const TraceSpan span(runtime_.trace(), "stoker.wait", next->epoch, next->index);
    stalls_.Begin();
    return assembler_.Take([this, &interrupt] {
      LookForStall();
      return interrupt && interrupt();
    });
  }();
  if (!batch.ok() && batch.error().code == Code::kCancelled) return batch;
  trace_.Batch(assembler_.last(), assembler_.last_row(), settings_.settings());
  settings_.Learn(assembler_.last());
  // Take and Learn may have opened batches: reader threads claim their rows (Pull).
  reads_.Wake();
  bad_.Taken(*next, assembler_.last_bad(), !batch.ok());
  if (batch.ok()) delivered_.fetch_add(1, std::memory_order_relaxed);
  ++passed_;
  const bool last = next->index + 1 == batches_from(next->start);
  after_last_ =
      last ? BatchName{next->epoch + 1, 0} : BatchName{next->epoch, next->index + 1, next->start};
  epoch_ended_ = last && assembler_.schedule() != Schedule::kAppended;
  return batch;
}

Error Producer::TooManyLent() const {
  const std::string held = std::to_string(slots_->account().batches()) + " batches";
  if (!options_.to_device) {
    return {.code = Code::kResourceExhausted,
            .cause = "the caller holds " + held + " already, as many as lent_batches allows",
            .advice = "Release batches before taking more, or raise lent_batches"};
  }
  return {.code = Code::kResourceExhausted,
          .cause = held +
                   " are held on the host, by the map function and on their way to the "
                   "device; lent_batches allows the function " +
                   std::to_string(options_.lent_batches),
          .advice = "Keep copies of a few values in it, or raise lent_batches"};
}

void Producer::LookForStall() {
  if (stalls_.patience_ns() == 0 || !stalls_.Look(NowNanoseconds(), unfinished_.State())) return;
  std::string what = unfinished_.Describe();
  runtime_.Log(AwaitedInVain(position(), stalls_.patience_ns()) + what);
  stalls_.Tell(std::move(what));
}

// ---- Settings, positions, start and stop

void Producer::Apply(const TunerSettings& settings) {
  assembler_.SetDepth(settings.depth);
  workers_.SetLimit(static_cast<uint32_t>(settings.workers));
  if (options_.source->in_memory()) return;
  samples_.SetLimits(static_cast<uint32_t>(settings.reads),
                     static_cast<uint32_t>(RowsAhead(settings.reads, settings.workers)));
}

Status Producer::Seek(BatchName batch, Schedule schedule, const Interrupt& interrupt) {
  TRY(CheckSeek(batch));
  TRY(lifecycle_.Halt([&] { return lifecycle_.stopped() || (interrupt && interrupt()); }));
  epoch_ended_ = false;
  after_last_ = batch;
  return lifecycle_.Restart([&] {
    bad_.DropUndelivered();
    assembler_.Restart(settings_.settings().depth, SequenceFrom(batch, schedule));
    if (maps_ != nullptr) maps_->Open();
  });
}

Status Producer::CheckSeek(BatchName batch) const { return Check("Seek to", batch); }

Status Producer::Append(BatchName batch) {
  TRY(Check("Append", batch));
  if (assembler_.schedule() != Schedule::kAppended) TRY(Seek(batch, Schedule::kAppended));
  assembler_.Append(batch);
  return {};
}

Status Producer::Check(const char* call, BatchName batch) const {
  TRY(runtime_.CheckProcess());
  if (batch.epoch > kMaxEpochs) {
    return Error{Code::kInvalidArgument, std::string(call) + " epoch " +
                                             std::to_string(batch.epoch) + "; at most " +
                                             std::to_string(kMaxEpochs) + " is possible"};
  }
  if (batch.index >= batches_from(batch.start)) {
    return Error{Code::kInvalidArgument,
                 std::string(call) + " batch " + std::to_string(batch.index) +
                     " of an epoch that has " + std::to_string(batches_from(batch.start))};
  }
  return {};
}

BatchSequence Producer::SequenceFrom(BatchName batch, Schedule schedule) const {
  return {schedule, batches_per_epoch(), batch, batches_from(batch.start),
          options_.epochs.value_or(kMaxEpochs)};
}

void Producer::Cancel() {
  lifecycle_.Stop([this] {
    assembler_.Cancel();
    if (maps_ != nullptr) maps_->Close();
  });
}

void Producer::Stop() {
  Cancel();
  (void)lifecycle_.Halt();
}

bool Producer::TryStop() {
  Cancel();
  return lifecycle_.TryHalt();
}

Producer::~Producer() {
  Stop();
  assembler_.ReturnSlots();
  slots_->Retire();
}

LoaderStats Producer::Stats() const {
  LoaderStats stats;
  settings_.AddTo(stats);
  stats.depth_given = options_.depth != 0;
  decoder_.AddTo(stats);
  stalls_.AddTo(stats);
  stats.batches = delivered_;
  AddSlots(*slots_, stats);
  AddRuntime(runtime_, *options_.source, reads_, stats);
  stats.crops_at_random = CropsAtRandom(options_);
  stats.plan = decoder_.plan() ? decoder_.plan()->Describe() : "rows copied as they are";
  if (options_.mix) stats.plan += "; batches: " + TextOf(*options_.mix);
  if (!map_) return stats;
  stats.map = map_->name();
  stats.map_threads = map_->calls();
  stats.plan += (maps_ == nullptr ? "; rows: " : "; then batches: ") + stats.map;
  if (maps_ == nullptr) return stats;
  stats.map_calls = maps_->calls();
  stats.stages.map_ns += maps_->called_ns();
  return stats;
}

}  // namespace stoker
