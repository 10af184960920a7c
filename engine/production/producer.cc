#include "engine/production/producer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "core/result/try.h"
#include "core/time/core_time.h"
#include "core/time/stage_times.h"
#include "core/time/trace.h"
#include "engine/options/check_options.h"
#include "engine/production/producer_parts.h"
#include "engine/runtime/executor.h"
#include "transforms/plan/explain.h"

namespace stoker {

namespace {

using Place = SamplesInFlight::Place;

// Returns the cost of filling one row.
RowCost CostOf(const SampleTimes& times, uint32_t reads_in_flight, uint64_t work_ns) {
  RowCost cost{.work_ns = work_ns};
  if (times.begun_ns != 0) cost.longest_ns = times.done_ns - times.begun_ns;
  if (reads_in_flight == 0) return cost;
  cost.read_ns = times.read_ns - times.claimed_ns;
  cost.reads = 1;
  cost.reads_in_flight = reads_in_flight;
  return cost;
}

bool IsRandomCrop(const Transform& transform) {
  return std::holds_alternative<RandomResizedCrop>(transform) ||
         std::holds_alternative<RandomCrop>(transform);
}

// Refuses strings next to the images that a batch on a device would have: the host's batch, which
// owns them, is gone when the device's batch is taken.
Status CheckStrings(const SampleSource& source, std::span<const ColumnSpec> columns) {
  for (const ColumnSpec& column : columns.first(source.fields().size())) {
    if (!column.owns_strings) continue;
    return Error{.code = Code::kUnimplemented,
                 .cause = "column '" + column.name + "' of " + source.Describe() +
                          " has strings that are read with the images, which batches on a device "
                          "do not have",
                 .advice =
                     "Leave the column out, let a function of yours replace it by numbers, or "
                     "take batches on the host"};
  }
  return {};
}

}  // namespace

// ---- Opening: the stages of the pipeline

// In the order of the picture in the README: source → order → reader → worker (draw, decode,
// resize) → (mix) → assembler → consumer. A loader with a device has a stager after the assembler
// (Engine::Open).
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
  if (options.to_device) TRY(CheckStrings(source, columns));
  std::optional<Mixer> mixer;
  if (options.mix) {
    ASSIGN_OR_RETURN(mixer, Mixer::Make(options, own->defer_to_device, columns));
  }
  ASSIGN_OR_RETURN(Reserved memory, Reserve(options, *own, columns, plan));
  return std::unique_ptr<Producer>(
      new Producer(std::move(options), std::move(sampler), std::move(plan), std::move(mixer),
                   std::move(map), std::move(own->bad), std::move(own->cache), std::move(memory)));
}

Producer::Producer(LoaderOptions options, Sampler sampler, std::optional<Plan> plan,
                   std::optional<Mixer> mixer, std::optional<MapCaller> map,
                   std::shared_ptr<BadSampleLog> bad, std::shared_ptr<SampleCache> cache,
                   Reserved memory)
    : options_(std::move(options)),
      runtime_(*options_.runtime),
      sampler_(std::move(sampler)),
      in_memory_(options_.source->in_memory()),
      has_calls_(options_.source->calls() != 0),
      own_reads_(runtime_.ReadsOf(*options_.source)),
      reads_(own_reads_ != nullptr ? *own_reads_ : runtime_.reads()),
      trace_(runtime_.trace(), *options_.source),
      slots_(std::move(memory.slots)),
      samples_(memory.lease->plan().requests, memory.lease->samples(), in_memory_),
      substitutes_(memory.lease->plan().requests, IndexSet::Begin::kEmpty),
      cache_(std::move(cache)),
      concurrency_(static_cast<uint32_t>(runtime_.options().threads)),
      map_(std::move(map)),
      writer_(options_, sampler_, std::move(plan), std::move(mixer), map_ ? &*map_ : nullptr,
              slots_->columns(), cache_.get(), samples_, memory.lease->samples(),
              runtime_.options().threads),
      feed_(options_, sampler_, writer_.plan(), samples_,
            RunOf(options_, map_ && map_->calls() == 0, runtime_.options().threads)),
      assembler_(sampler_, slots_, /*depth=*/0, memory.lease->plan().max_depth, SequenceFrom({})),
      maps_(MakeMaps()),
      bad_(
          options_.on_bad, std::move(bad), sampler_,
          options_.to_device ? BadSamples::Counts::kWhenDelivered : BadSamples::Counts::kWhenTaken),
      memory_(std::move(memory.lease)),
      stalls_(static_cast<uint64_t>(runtime_.options().stall_seconds * 1e9)),
      settings_(TunerOptionsOf(options_, runtime_), LimitsOf(options_, runtime_, memory_->plan()),
                *memory_, *slots_, trace_, [this](const TunerSettings& tuned) { Apply(tuned); }) {
  memory_->OnShortage([this] { FreeIdleMemory(); });
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

// ---- The path of one sample

// Order → reader: claims rows while batches are open, half of the requests are free and the limit
// on reads allows; End wakes a reader thread that stopped for requests. Samples in memory need no
// reader: they are handed to the workers from here.
size_t Producer::Pull(std::span<ReadRequest*> requests) {
  if (stopped_.load(std::memory_order_relaxed)) return 0;
  size_t pulled = PullSubstitutes(requests);
  requests = requests.subspan(pulled);
  if (requests.empty()) return pulled;
  const WorkToken pulling = memory_->TryBegin();
  if (!pulling) return pulled + PullRetry(requests);
  trace_.Samples(samples_.reading(), samples_.ready());
  if (!in_memory_) pulled += PullNew(requests);
  while (in_memory_ && !stopped_.load(std::memory_order_relaxed)) {
    const std::optional<uint32_t> run = feed_.NextRun(assembler_);
    if (!run) break;
    samples_[*run].work = memory_->Begin();
    Submit(*run);
  }
  return pulled;
}

// Samples in the cache need no reader either, but a worker reads them just before it decodes them,
// so that the bytes are in its core's own cache. While there are such samples, their requests are
// filled again, but not for long: other loaders, and completed reads, wait for this thread.
size_t Producer::PullNew(std::span<ReadRequest*> requests) {
  size_t pulled = 0, filled = 0, kept = 0, all_kept = 0;
  do {
    filled = feed_.Fill(assembler_, requests.subspan(pulled));
    kept = 0;
    for (ReadRequest* read : requests.subspan(pulled, filled)) {
      const uint32_t index = samples_.IndexOf(*read);
      samples_[index].work = memory_->Begin();
      if (IsInCache(index)) {
        ++kept;
        Submit(index);
        continue;
      }
      samples_.SetPlace(index, Place::kReading);
      requests[pulled++] = read;
    }
    all_kept += kept;
  } while (kept != 0 && all_kept < 2 * requests.size() &&
           !stopped_.load(std::memory_order_relaxed) && !ending_);
  if (kept != 0) reads_.Wake();  // there may be more
  return pulled;
}

bool Producer::IsInCache(uint32_t index) {
  SampleInFlight& sample = samples_[index];
  if (cache_ == nullptr) return false;
  cache_->Find(sample.read, sample.cached);
  if (sample.cached.state != CachedSample::State::kKept) return false;
  samples_.EndRead();
  sample.reads_in_flight = 0;
  sample.read.status = {};
  return true;
}

// Reader → worker.
void Producer::CompleteRead(ReadRequest& read) {
  samples_.EndRead();
  Submit(samples_.IndexOf(read));
}

// The task is counted before the sample is ready, because another task's worker may take the
// sample, and once that task has ended only this count keeps the producer from being destroyed
// under this thread.
void Producer::Submit(uint32_t sample) {
  SampleTimes& times = samples_[sample].path.times();
  times.read_ns = in_memory_ ? times.claimed_ns : NowNanoseconds();
  WorkToken task = memory_->Begin();
  samples_.SetReady(sample);
  SendWorker(std::move(task));
}

void Producer::SendWorker(WorkToken task) {
  std::move(task).Release();
  runtime_.executor().Submit({&Producer::Work, this, 0});
}

// For every ready sample a worker task has been submitted, or was refused at the concurrency limit
// and will be submitted again when a worker leaves. A spare task, whose sample another worker has
// taken in addition to its own, enters and leaves, too, because tasks that were refused wait for
// the next one to leave.
void Producer::Work(void* producer, uint32_t, int worker) {
  auto& self = *static_cast<Producer*>(producer);
  const WorkToken task = self.memory_->Adopt();
  if (!self.concurrency_.Enter()) return;
  self.ProcessReady(worker);
  if (self.concurrency_.Leave()) self.SendWorker(self.memory_->Begin());
}

// Bytes → row.
void Producer::ProcessReady(int worker) {
  const std::optional<uint32_t> first = samples_.TakeReady();
  if (!first) return;  // the task is spare
  samples_.SetPlace(*first, Place::kWorking);
  WorkerCounters& counters = writer_.counters(worker);
  std::optional<CoreClock> clock;
  if (counters.MayClock()) clock.emplace();
  if (stopped_.load(std::memory_order_relaxed)) {
    End(*first, {}, Error{Code::kCancelled, "stopped"}, worker);
  } else {
    const TraceSpan span(runtime_.trace(), "stoker.decode");
    if (in_memory_) {
      writer_.Copy(*first, worker, *this);
    } else {
      writer_.Decode(*first, worker, *this);
    }
    if (writer_.plan()) TrimWorkspace(writer_.workspace(worker));
    if (cache_ != nullptr) TrimPacker(writer_.packer(worker));
  }
  if (!clock) return;
  if (const std::optional<CoreTime> time = clock->Read()) counters.AddClocked(*time);
}

// Gives a worker a second sample to interleave with its own, if that leaves enough for the other
// workers.
std::optional<uint32_t> Producer::TakeReady() {
  if (stopped_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::optional<uint32_t> taken = samples_.TakeFurther(concurrency_.limit());
  if (taken) samples_.SetPlace(*taken, Place::kWorking);
  return taken;
}

// Worker → assembler. The worker that finishes the last row of a batch mixes it, and may hand it to
// the program's function.
void Producer::End(uint32_t sample, uint64_t work_ns, Status status, int worker) {
  SampleInFlight& done = samples_[sample];
  const WorkToken work = std::move(done.work);  // ends after everything else in this function
  TrimBuffer(done.read.buffer);
  const RowTicket ticket = done.ticket;
  const SamplePath path = done.path;
  const RowCost cost = CostOf(path.times(), done.reads_in_flight, work_ns);
  samples_.SetPlace(sample, Place::kNone);
  samples_.Give(sample);
  if (samples_.waiting() && (has_calls_ || !samples_.TooFewFree())) reads_.Wake();
  const Assembler::BatchState state = assembler_.RowsDone(ticket, cost, std::move(status));
  if (state != Assembler::BatchState::kRowsMissing) {
    if (state == Assembler::BatchState::kWhole) assembler_.DropRows(ticket);
    const bool failed = state == Assembler::BatchState::kFailed || ticket.slot->rows == 0;
    BatchCost spent;
    if (writer_.mixes() && !failed) {
      const TraceSpan span(runtime_.trace(), "stoker.mix", ticket.slot->epoch, ticket.slot->index);
      spent.mix_ns = writer_.Mix(*ticket.slot, worker);
    }
    if (maps_ != nullptr) {
      spent.whole_ns = NowNanoseconds();
      maps_->Give({ticket, path, spent, failed});
    } else {
      assembler_.Complete(ticket, path, spent);
    }
  }
}

// Assembler → consumer.
Result<Batch> Producer::Next(const Interrupt& interrupt) {
  TRY(runtime_.CheckProcess());
  if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
  if (std::exchange(epoch_ended_, false)) return Batch();
  const std::optional<BatchName> next = assembler_.position();
  if (!next) return Batch();
  if (!slots_->CanLend()) return TooManyLent();
  TRY(Start());
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

// ---- Settings, positions, start and stop

void Producer::Apply(const TunerSettings& settings) {
  assembler_.SetDepth(settings.depth);
  const auto workers = static_cast<uint32_t>(settings.workers);
  for (uint32_t sent = concurrency_.SetLimit(workers); sent > 0; --sent) {
    SendWorker(memory_->Begin());
  }
  if (in_memory_) return;
  samples_.SetLimits(static_cast<uint32_t>(settings.reads),
                     static_cast<uint32_t>(RowsAhead(settings.reads, settings.workers)));
}

Status Producer::Seek(BatchName batch, Schedule schedule, const Interrupt& interrupt) {
  TRY(CheckSeek(batch));
  TRY(Halt([&] { return stopped_ || (interrupt && interrupt()); }));
  epoch_ended_ = false;
  after_last_ = batch;
  return StartAt(batch, schedule);
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

Status Producer::StartAt(BatchName batch, Schedule schedule) {
  std::lock_guard lock(lifecycle_);
  if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
  bad_.DropUndelivered();
  assembler_.Restart(settings_.settings().depth, SequenceFrom(batch, schedule));
  if (maps_ != nullptr) maps_->Open();
  return {};
}

// Attaches to the reader threads, which then start to call Pull.
Status Producer::Start() {
  std::lock_guard lock(lifecycle_);
  if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
  if (running_) return {};
  if (maps_ != nullptr) TRY(maps_->Start());
  ending_ = false;
  Status attached = reads_.Attach(this);
  running_ = attached.ok();
  return attached;
}

// Stops production and waits for the samples in progress, which are few, and for calls of the
// program's own code, which may hang. `interrupt` is asked without a lock, because it may stop the
// loader.
Status Producer::Halt(const Interrupt& interrupt) {
  while (!TryHalt()) {
    if (!interrupt || !interrupt()) continue;
    return Error{Code::kCancelled,
                 stopped_ ? "the loader was stopped" : "the wait was interrupted"};
  }
  return {};
}

// Returns false if it took longer than an interrupt may wait.
bool Producer::TryHalt() {
  std::unique_lock lock(lifecycle_);
  const auto is_free = [this] { return !halting_; };
  if (!halted_.wait_for(lock, kInterruptInterval, is_free)) return false;
  halting_ = true;
  lock.unlock();
  const bool halted = EndWork();
  lock.lock();
  halting_ = false;
  halted_.notify_one();
  return halted;
}

// TryHalt for the thread that set halting_. Whole batches that wait for the program's function are
// dropped first, because they may wait for an earlier batch whose samples are given up here.
// Samples that wait for memory, and substitutes that nobody has pulled, are given up before the
// first wait: an interrupt may end any wait, and samples of other loaders would wait for them.
bool Producer::EndWork() {
  ending_ = true;
  if (maps_ != nullptr) maps_->Close();
  DropPostponed();
  DropSubstitutes();
  if (running_ && !reads_.TryDetach(this, kInterruptInterval)) return false;
  running_ = false;
  if (!memory_->TryDrain(kInterruptInterval)) return false;
  return maps_ == nullptr || maps_->Wait(kInterruptInterval);
}

void Producer::Cancel() {
  std::lock_guard lock(lifecycle_);
  assembler_.Cancel();  // first, so that samples that are given up do not fail a batch that is
                        // delivered
  stopped_ = true;
  if (maps_ != nullptr) maps_->Close();
}

void Producer::Stop() {
  Cancel();
  (void)Halt();
}

bool Producer::TryStop() {
  Cancel();
  return TryHalt();
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
  stats.workers_given = runtime_.fixed().workers != 0;
  stats.reads_given = runtime_.fixed().reads != 0 || has_calls_;
  writer_.AddTo(stats);
  stalls_.AddTo(stats);
  stats.batches = delivered_;
  stats.read_cpu_ns = reads_.read_cpu_ns();
  stats.lent_batches = slots_->account().batches();
  stats.lent_bytes = slots_->account().bytes();
  stats.slot_bytes = slots_->slot_bytes();
  stats.pinned_bytes = slots_->pinned_bytes();
  stats.pinning_ns = slots_->pinning_ns();
  stats.memory_used = runtime_.budget().used();
  stats.memory_peak = runtime_.budget().peak();
  stats.memory_budget = runtime_.budget().limit();
  stats.threads = runtime_.executor().concurrency();
  stats.threads_seen = runtime_.executor().threads_seen();
  stats.executor = runtime_.executor().name();
  stats.executor_reason = runtime_.executor_reason();
  stats.may_have_crop_index = options_.source->may_have_crop_index();
  stats.crops_at_random = std::ranges::any_of(options_.transforms, IsRandomCrop) ||
                          std::ranges::any_of(options_.views, [](const auto& view) {
                            return std::ranges::any_of(view, IsRandomCrop);
                          });
  stats.reader = runtime_.reader().kind == ReaderKind::kUring ? "uring" : "pread";
  stats.reader_reason = runtime_.reader().reason;
  if (has_calls_) {
    stats.reader = "calls";
    stats.reader_reason = "the source is called";
  } else if (own_reads_ != nullptr) {
    stats.reader = "objects";
    stats.reader_reason = "the samples are in objects behind URLs";
  }
  if (in_memory_) {
    stats.reads = 0;
    stats.reader = "none";
    stats.reader_reason = "the samples are in memory";
  }
  stats.plan = writer_.plan() ? writer_.plan()->Describe() : "rows copied as they are";
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
