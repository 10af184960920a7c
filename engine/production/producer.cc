#include "engine/production/producer.h"

#include <string>
#include <utility>

#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "core/time/trace.h"
#include "engine/arrays/processor.h"
#include "engine/order/patch_counts.h"
#include "engine/order/token_batches.h"
#include "engine/runtime/runtime.h"
#include "transforms/plan/explain.h"

namespace stoker {

Result<std::unique_ptr<Producer>> Producer::Open(LoaderOptions options,
                                                 std::optional<ProducerOptions> own) {
  ASSIGN_OR_RETURN(ProducerParts parts, PartsOf(std::move(options), std::move(own)));
  return std::unique_ptr<Producer>(new Producer(std::move(parts)));
}

// The stages of the picture in the README, from right to left, because each stage gets a reference
// to the next. A loader with a device has a copier after the assembler.
Producer::Producer(ProducerParts parts)
    : options_(std::move(parts.options)),
      runtime_(*options_.runtime),
      sampler_(std::move(parts.sampler)),
      own_reads_(runtime_.ReadsOf(*options_.source)),
      reads_(own_reads_ != nullptr ? *own_reads_ : runtime_.reads()),
      trace_(runtime_.trace(), *options_.source),
      slots_(std::move(parts.memory.slots)),
      samples_(parts.memory.lease->plan().requests, parts.memory.lease->samples(),
               options_.source->pieces(), parts.plan ? parts.plan->parts() : 1),
      cache_(std::move(parts.cache)),
      map_(std::move(parts.map)),
      assembler_(sampler_, slots_, /*depth=*/0, parts.memory.lease->plan().max_depth,
                 SequenceFrom({}), options_.patch_counts.get()),
      maps_(map_ && map_->calls() != 0
                ? std::make_unique<MapThreads>(*map_, *slots_, runtime_.trace(), assembler_)
                : nullptr),
      decoder_(
          options_, sampler_, std::move(parts.plan), std::move(parts.mixer),
          map_ ? &*map_ : nullptr, slots_->columns(), cache_.get(), samples_,
          parts.memory.lease->samples(),
          [this](const Error& error) {
            return memory_->Refusal(error, decoder_.plan() ? decoder_.plan()->tile_bytes() : 0);
          },
          runtime_.options().threads),
      memory_(std::move(parts.memory.lease)),
      finisher_(samples_, assembler_, decoder_, maps_.get(), *memory_, reads_,
                /*wakes_early=*/options_.source->calls() != 0, runtime_.trace()),
      workers_(samples_, *memory_, runtime_.executor(), &Producer::Turn, this),
      feeder_(options_, sampler_, decoder_.plan(),
              RunOf(options_, map_ && map_->calls() == 0, runtime_.options().threads),
              {samples_, assembler_, workers_, finisher_, *memory_, reads_, cache_.get(),
               lifecycle_, trace_}),
      lifecycle_(WorkOfStages()),
      bad_(
          options_.on_bad, std::move(parts.bad), sampler_,
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

// ---- The path of samples. Feeder has the first half: order → reader → worker.

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
  if (outcome.kind == SampleOutcome::Kind::kReadAgain) return feeder_.ReadAgain(sample);
  if (outcome.kind == SampleOutcome::Kind::kNoMemory && !lifecycle_.stopped())
    return feeder_.Postpone(sample);
  if (outcome.kind == SampleOutcome::Kind::kUnusable) {
    Error error = std::move(outcome.status).error();
    const uint64_t substitute = NextSubstitute(samples_[sample]);
    const OnBad action = ActionOn(samples_[sample], error);
    if (action == OnBad::kSubstitute) return feeder_.Substitute(sample, substitute);
    outcome.status = action == OnBad::kDrop ? Status() : std::move(error);
  }
  finisher_.End(sample, outcome.work_ns, std::move(outcome.status), worker);
}

// Returns the sample to be read next for the row: a substitute, or the row's own if another of its
// samples could not be used. Substitutes that the row has no room for are skipped; if none is left,
// sample.substitutes, by which ActionOn judges, has its limit.
uint64_t Producer::NextSubstitute(SampleInFlight& sample) const {
  if (sample.read_of(sample.failed).sample != sample.read.sample) return sample.read.sample;
  const Slot& slot = *sample.claim.slot;
  constexpr uint32_t kMostDraws = 1024;
  const PatchCounts* const counts = options_.patch_counts.get();
  for (;; ++sample.draws) {
    const uint64_t next = sampler_.SubstituteFor(slot.epoch, sample.draw.position, sample.draws);
    const bool fits = !slot.has_room() || counts == nullptr ||
                      counts->places[next] <= slot.RoomOf(sample.claim.row);
    if (!fits && sample.draws >= kMostDraws) sample.substitutes = Sampler::kMostSubstitutes;
    if (fits || sample.draws >= kMostDraws) return next;
  }
}

OnBad Producer::ActionOn(const SampleInFlight& sample, Error& error) {
  if (lifecycle_.ending()) return OnBad::kFail;
  std::optional<BadRow> bad =
      bad_.Judge(sample.read_of(sample.failed).sample, sample.claim.row, sample.substitutes, error);
  if (!bad) return OnBad::kFail;
  const OnBad action = bad->action;
  assembler_.AddBadRow(sample.claim, *std::move(bad));
  return action;
}

// Assembler → consumer.
Result<Batch> Producer::Next(const Interrupt& interrupt) {
  TRY(runtime_.CheckProcess());
  if (lifecycle_.stopped()) return Error{Code::kCancelled, "the loader was stopped"};
  if (std::exchange(epoch_ended_, false)) return Batch();
  const std::optional<BatchName> next = assembler_.position();
  if (!next) return Batch();
  if (!slots_->CanLend()) return TooManyLent(options_, *slots_);
  TRY(lifecycle_.Start());
  ASSIGN_OR_RETURN(const bool reopened, assembler_.Reopen());
  if (reopened) reads_.Wake();
  Result<Batch> batch = [&] {
    const TraceSpan span(runtime_.trace(), "stoker.wait", next->epoch, next->index);
    stalls_.Begin();
    return assembler_.Take([this, &interrupt] {
      CheckForStall();
      return interrupt && interrupt();
    });
  }();
  if (!batch.ok() && batch.error().code == Code::kCancelled) return batch;
  trace_.Batch(assembler_.last(), assembler_.last_row(), settings_.settings());
  settings_.Observe(assembler_.last());
  // Take and Observe may have opened batches: reader threads claim their rows (Pull).
  reads_.Wake();
  bad_.RecordTaken(*next, assembler_.last_bad(), !batch.ok());
  if (batch.ok()) delivered_.fetch_add(1, std::memory_order_relaxed);
  ++passed_;
  const bool last = next->index + 1 == batches_from(next->start);
  after_last_ =
      last ? BatchName{next->epoch + 1, 0} : BatchName{next->epoch, next->index + 1, next->start};
  epoch_ended_ = last && assembler_.schedule() != Schedule::kAppended;
  return batch;
}

void Producer::CheckForStall() {
  if (stalls_.patience_ns() == 0 || !stalls_.Poll(NowNanoseconds(), unfinished_.State())) return;
  std::string what = unfinished_.Describe();
  runtime_.Log(AwaitedInVain(*assembler_.position(), stalls_.patience_ns()) + what);
  stalls_.Report(std::move(what));
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
  needs_seek_ = true;
  TRY(lifecycle_.Halt([&] { return lifecycle_.stopped() || (interrupt && interrupt()); }));
  epoch_ended_ = false;
  after_last_ = batch;
  TRY(lifecycle_.Restart([&] {
    bad_.DropUndelivered();
    assembler_.Restart(settings_.settings().depth, SequenceFrom(batch, schedule));
    if (maps_ != nullptr) maps_->Open();
  }));
  needs_seek_ = false;
  return {};
}

std::optional<BatchName> Producer::position() const {
  if (needs_seek_) return std::nullopt;
  return assembler_.position().value_or(after_last_);
}

Status Producer::CheckSeek(BatchName batch) const {
  TRY(runtime_.CheckProcess());
  return CheckPosition("Seek to", batch, sampler_);
}

Status Producer::Append(BatchName batch) {
  TRY(runtime_.CheckProcess());
  TRY(CheckPosition("Append", batch, sampler_));
  if (assembler_.schedule() != Schedule::kAppended) TRY(Seek(batch, Schedule::kAppended));
  assembler_.Append(batch);
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
  if (options_.token_batches != nullptr) {
    stats.batch_fill = options_.token_batches->fill();
    stats.fuller_tokens = options_.token_batches->fuller_budget();
  }
  AddSlots(*slots_, stats);
  AddRuntime(runtime_, *options_.source, reads_, stats);
  stats.crops_at_random = CropsAtRandom(options_);
  stats.plan = decoder_.plan()                 ? decoder_.plan()->Describe()
               : options_.processor == nullptr ? "rows copied as they are"
                                               : TextOf(options_.processor->recipe());
  if (options_.mix) stats.plan += "; batches: " + TextOf(*options_.mix);
  if (map_) AddFunction(*map_, maps_.get(), stats);
  return stats;
}

}  // namespace stoker
