#include "engine/loader/loader.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "engine/device/device_stage.h"
#include "engine/loader/loader_state.h"
#include "engine/order/batch_sequence.h"
#include "engine/order/sampler.h"
#include "engine/production/check_options.h"
#include "engine/production/producer_options.h"
#include "io/remote/object_version.h"

namespace stoker {

namespace {

// A forked child does not destroy the maker, because everything in it belongs to the parent.
Result<std::shared_ptr<BatchMaker>> OpenMaker(LoaderOptions options, const ProducerOptions& own) {
  ASSIGN_OR_RETURN(std::unique_ptr<Producer> producer, Producer::Open(std::move(options), own));
  const std::shared_ptr<Runtime> runtime = producer->options().runtime;
  std::unique_ptr<BatchMaker> maker;
  if (producer->options().to_device) {
    ASSIGN_OR_RETURN(maker, DeviceStage::Open(std::move(producer), own));
  } else {
    maker = std::move(producer);
  }
  return std::shared_ptr<BatchMaker>(maker.release(), [runtime](BatchMaker* made) {
    if (runtime->CheckProcess().ok()) delete made;
  });
}

// Whether Next returns this batch, followed by those of the schedule.
bool IsAt(const BatchMaker& maker, BatchName batch, Schedule schedule) {
  return maker.schedule() == schedule && maker.position() == batch;
}

}  // namespace

struct Loader::State {
  State(ProducerOptions made, const LoaderOptions& options)
      : producer(std::move(made)), identity(IdentityOf(options)) {}

  const ProducerOptions producer;
  const Identity identity;
  std::mutex mutex;  // guards the members below
  std::condition_variable by_name;
  bool serving_by_name = false;                   // one BatchAt at a time
  std::vector<std::shared_ptr<BatchMaker>> idle;  // the one used most recently is last
  std::vector<std::shared_ptr<BatchMaker>> busy;  // borrowed
  // Cancelled makers that are no longer used, but are in a call of the program's own code, which
  // may hang.
  std::vector<std::shared_ptr<BatchMaker>> ending;
  LoaderStats past;             // of makers that have been destroyed
  DeviceCopyStats past_copies;  // of the same makers
  bool stopped = false;
  bool warned = false;
  bool warned_of_pinning = false;
  bool warned_of_cache = false;
  std::optional<std::string> warning, pinning_warning;
};

Result<std::shared_ptr<Loader>> Loader::Open(LoaderOptions options,
                                             std::shared_ptr<EpochCounter> epochs) {
  if (epochs == nullptr) epochs = std::make_shared<EpochCounter>();
  options.token_batches = nullptr;  // those of the options that they were copied from
  options.patch_counts = nullptr;
  ASSIGN_OR_RETURN(ProducerOptions producer, ProducerOptionsOf(options));
  ASSIGN_OR_RETURN(std::shared_ptr<BatchMaker> first, OpenMaker(std::move(options), producer));
  const Producer& made = first->producer();
  // The producer's options have the Runtime filled in.
  std::shared_ptr<Loader> loader(
      new Loader(made.options(), std::move(producer), std::move(epochs)));
  loader->batches_per_epoch_ = made.batches_per_epoch();
  loader->last_rows_ = made.last_rows();
  loader->columns_ = first->columns();
  loader->NotePinning(*first);
  loader->state_->idle.reserve(loader->MaxIdle() + 1);
  loader->state_->idle.push_back(std::move(first));
  return loader;
}

Loader::Loader(LoaderOptions options, ProducerOptions producer,
               std::shared_ptr<EpochCounter> epochs)
    : options_(std::move(options)),
      epochs_(std::move(epochs)),
      state_(std::make_unique<State>(std::move(producer), options_)) {}

Loader::~Loader() = default;

std::unique_ptr<Iterator> Loader::Iterate(std::optional<uint64_t> epoch, bool repeat) {
  return std::unique_ptr<Iterator>(new Iterator(shared_from_this(), epoch, repeat));
}

uint64_t Loader::batches_from(uint64_t start) const {
  return start == 0 ? batches_per_epoch_ : Order().batches_from(start);
}

uint32_t Loader::last_rows_from(uint64_t start) const {
  const uint64_t batches = batches_from(start);
  return batches == 0 ? 0 : Order().RowsIn({0, batches - 1, start});
}

// A producer was made with these options, so they are valid for a Sampler.
Sampler Loader::Order() const { return Sampler::Make(SamplerOptionsOf(options_)).value(); }

Result<BatchName> Loader::PlaceOf(std::string_view state, bool same_ranks) const {
  return ReadState(state, state_->identity, Order(), same_ranks);
}

std::string Loader::StateAt(BatchName next) const { return StateText(state_->identity, next); }

bool Loader::IdleAt(BatchName batch) const {
  return std::ranges::any_of(state_->idle, [&](const auto& e) { return e->position() == batch; });
}

// Requires state_->mutex. Prefers a maker that is already at `batch`, then the least recently used
// one.
std::shared_ptr<BatchMaker> Loader::TakeIdle(BatchName batch, Schedule schedule, bool spare) {
  auto best =
      std::ranges::find_if(state_->idle, [&](const auto& e) { return IsAt(*e, batch, schedule); });
  if (best == state_->idle.end()) {
    best =
        std::ranges::find_if(state_->idle, [&](const auto& e) { return e->position() == batch; });
  }
  if (best == state_->idle.end()) {
    if (state_->idle.empty() || (spare && state_->idle.size() < MaxIdle())) return nullptr;
    // A maker whose Seek was interrupted is the last choice: it may wait for a call that hangs.
    best =
        std::ranges::find_if(state_->idle, [](const auto& e) { return e->position().has_value(); });
    if (best == state_->idle.end()) best = state_->idle.begin();
  }
  std::shared_ptr<BatchMaker> maker = std::move(*best);
  state_->idle.erase(best);
  return maker;
}

// Returns an idle maker, or opens a new one.
Result<Loader::Borrowed> Loader::FindMaker(BatchName batch, Schedule schedule, bool spare) {
  const Error was_stopped{Code::kCancelled, "the loader was stopped"};
  const auto lend =
      [&](std::shared_ptr<BatchMaker> maker) -> Result<Borrowed> {  // requires state_->mutex
    if (state_->stopped) return was_stopped;
    state_->busy.push_back(std::move(maker));
    return Borrowed(state_->busy.back().get(), ReturnMaker{this});
  };
  std::unique_lock lock(state_->mutex);
  if (state_->stopped) return was_stopped;
  std::shared_ptr<BatchMaker> maker = TakeIdle(batch, schedule, spare);
  if (maker != nullptr) return lend(std::move(maker));
  lock.unlock();
  Result<std::shared_ptr<BatchMaker>> opened = OpenMaker(options_, state_->producer);
  if (opened.ok()) NotePinning(**opened);
  lock.lock();
  if (opened.ok()) return lend(*std::move(opened));
  if (state_->stopped) return was_stopped;
  maker = TakeIdle(batch, schedule, /*spare=*/false);
  if (maker != nullptr) return lend(std::move(maker));
  return std::move(opened).error();
}

Result<Loader::Borrowed> Loader::Borrow(BatchName batch, Schedule schedule,
                                        const Interrupt& interrupt, bool spare) {
  TRY(options_.runtime->CheckProcess());
  ASSIGN_OR_RETURN(Borrowed maker, FindMaker(batch, schedule, spare));
  const bool there = schedule != Schedule::kAppended && IsAt(*maker, batch, schedule);
  if (!there) TRY(maker->Seek(batch, schedule, interrupt));
  return maker;
}

void Loader::ReturnMaker::operator()(BatchMaker* maker) const {
  if (!loader->options_.runtime->CheckProcess().ok()) return;  // in a forked child
  State& state = *loader->state_;
  std::unique_lock lock(state.mutex);
  const auto returned = std::ranges::find(state.busy, maker, &std::shared_ptr<BatchMaker>::get);
  state.idle.push_back(std::move(*returned));
  state.busy.erase(returned);
  if (state.idle.size() <= loader->MaxIdle() && !state.stopped) return;
  const BatchMaker& surplus = *state.idle.front();
  AddStats(state.past, surplus.Stats());
  state.past_copies += surplus.CopyStats();
  state.ending.push_back(std::move(state.idle.front()));
  state.idle.erase(state.idle.begin());
  lock.unlock();
  loader->DestroyEnding();
}

// A consumer that returns a maker does not wait for a call that hangs: the maker is tried again
// when the next one is returned, and by Stop.
void Loader::DestroyEnding() {
  std::unique_lock lock(state_->mutex);
  const std::vector<std::shared_ptr<BatchMaker>> ending = state_->ending;
  for (const auto& maker : ending) {
    lock.unlock();
    const bool stopped = maker->TryStop();
    lock.lock();
    if (stopped) std::erase(state_->ending, maker);
  }
  lock.unlock();  // before `ending` destroys the makers
}

Result<Batch> Loader::BatchAt(BatchName batch, const Interrupt& interrupt) {
  TRY(options_.runtime->CheckProcess());
  if (options_.to_device) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this loader's batches go to a device, and have no names there",
                 .advice = "Iterate, and take them by " + options_.to_device->next_function()};
  }
  std::unique_lock lock(state_->mutex);
  while (!state_->by_name.wait_for(lock, kInterruptInterval,
                                   [this] { return !state_->serving_by_name; })) {
    lock.unlock();
    const bool interrupted = interrupt && interrupt();
    lock.lock();
    if (interrupted) return Error{Code::kCancelled, "the wait was interrupted"};
  }
  state_->serving_by_name = true;
  const bool follows = batch.index == 0 || IdleAt(batch);
  lock.unlock();
  const auto served = [this](void*) {
    {
      std::lock_guard done(state_->mutex);
      state_->serving_by_name = false;
    }
    state_->by_name.notify_one();
  };
  const std::unique_ptr<void, decltype(served)> serving(this,
                                                        served);  // also if an exception is thrown
  Result<Batch> made = MakeByName(batch, follows, interrupt);
  if (made.ok()) NoteLent();
  return made;
}

// Returns the error that ended the run because too many samples are bad, or the error of appending
// to the list of bad samples.
Status Loader::CheckBad() const {
  TRY(options_.runtime->CheckProcess());
  return state_->producer.bad->Check();
}

// `follows`: continue production after this batch; otherwise make only this one.
Result<Batch> Loader::MakeByName(BatchName batch, bool follows, const Interrupt& interrupt) {
  TRY(CheckBad());
  const Schedule schedule = follows ? Schedule::kEpochs : Schedule::kAppended;
  ASSIGN_OR_RETURN(Borrowed maker, Borrow(batch, schedule, interrupt, /*spare=*/true));
  if (!follows) TRY(maker->Append(batch));
  const uint64_t before = maker->passed();
  Result<Batch> made = maker->Next(interrupt);
  if (follows && maker->passed() != before && batch.index + 1 == batches_from(batch.start)) {
    maker->EndEpoch();
  }
  return made;
}

uint64_t Loader::LentBytes() const {
  const LentAccount& lent = *state_->producer.lent;
  const int batches = lent.batches();
  if (!options_.to_device || batches == 0) return lent.bytes();
  const int kept = std::max(batches - state_->producer.lent_batches, 0);
  return lent.bytes() / static_cast<uint64_t>(batches) * static_cast<uint64_t>(kept);
}

void Loader::NoteLent() {
  if (options_.lent_batches != 0) return;
  std::lock_guard lock(state_->mutex);
  if (state_->warned) return;
  const uint64_t lent = LentBytes();
  const uint64_t budget = options_.runtime->budget().limit();
  if (lent <= budget) return;
  state_->warned = true;
  state_->warning =
      "batches of " + std::to_string(lent) +
      " bytes are held outside stoker, more than the memory budget of " + std::to_string(budget) +
      " bytes (cache, shuffle and lists hold batches). Nothing limits it; set lent_batches "
      "to make it an error, or raise memory_budget to be silent";
}

void Loader::NotePinning(BatchMaker& maker) {
  const std::string& why = maker.producer().not_pinned();
  std::lock_guard lock(state_->mutex);
  if (why.empty() || state_->warned_of_pinning) return;
  state_->warned_of_pinning = true;
  state_->pinning_warning =
      "the memory of batches could not be pinned: " + why +
      ". Copies to a device are slower then, and hold up the thread that issues them. Lower depth, "
      "buffers, lent_batches or batch_size, or free memory";
}

std::optional<std::string> Loader::TakeWarning() {
  if (!options_.runtime->CheckProcess().ok()) return std::nullopt;
  std::lock_guard lock(state_->mutex);
  if (state_->warning) return std::exchange(state_->warning, std::nullopt);
  return std::exchange(state_->pinning_warning, std::nullopt);
}

std::optional<std::string> Loader::TakeCacheWarning() {
  const ObjectVersions* const objects = options_.source->objects();
  const SampleCache* const cache = state_->producer.cache.get();
  if (objects == nullptr && cache == nullptr) return std::nullopt;
  if (!options_.runtime->CheckProcess().ok()) return std::nullopt;
  std::lock_guard lock(state_->mutex);
  if (state_->warned_of_cache) return std::nullopt;
  std::string warning = objects != nullptr ? objects->Warning() : "";
  if (warning.empty() && cache != nullptr) warning = cache->Warning();
  state_->warned_of_cache = !warning.empty();
  if (warning.empty()) return std::nullopt;
  return warning;
}

void Loader::ReleaseIdle() {
  if (!options_.runtime->CheckProcess().ok()) return;
  {
    const std::lock_guard lock(state_->mutex);
    for (std::shared_ptr<BatchMaker>& maker : state_->idle) {
      AddStats(state_->past, maker->Stats());
      state_->past_copies += maker->CopyStats();
      state_->ending.push_back(std::move(maker));
    }
    state_->idle.clear();
  }
  DestroyEnding();
}

// Cancels all production before it waits for samples and calls in progress. It waits without the
// lock, because Stats takes the lock.
void Loader::Stop() {
  if (!options_.runtime->CheckProcess().ok()) return;
  std::vector<std::shared_ptr<BatchMaker>> all;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
    for (const auto* some : {&state_->busy, &state_->idle, &state_->ending}) {
      all.insert(all.end(), some->begin(), some->end());
    }
  }
  for (const auto& maker : all) maker->Cancel();
  for (const auto& maker : all) maker->Stop();
  ReleaseIdle();
}

LoaderStats Loader::Stats() const {
  if (!options_.runtime->CheckProcess().ok()) return {};
  std::lock_guard lock(state_->mutex);
  LoaderStats all = state_->past;
  all.pinned_bytes = 0;  // already released
  for (const auto& maker : state_->idle) AddStats(all, maker->Stats());
  for (const auto& maker : state_->busy) AddStats(all, maker->Stats());
  all.bad = state_->producer.bad->counts();
  all.lent_batches = state_->producer.lent->batches();
  all.lent_bytes = state_->producer.lent->bytes();
  if (state_->producer.cache != nullptr) all.cache = state_->producer.cache->counts();
  all.memory_used = options_.runtime->budget().used();  // also when there is no maker to report it
  all.memory_peak = options_.runtime->budget().peak();
  return all;
}

DeviceCopyStats Loader::CopyStats() const {
  if (!options_.runtime->CheckProcess().ok()) return {};
  std::lock_guard lock(state_->mutex);
  DeviceCopyStats all = state_->past_copies;
  const auto add = [&all](const BatchMaker& maker) {
    const DeviceCopyStats one = maker.CopyStats();
    all += one;
    all.device_bytes += one.device_bytes;
  };
  for (const auto& maker : state_->idle) add(*maker);
  for (const auto& maker : state_->busy) add(*maker);
  return all;
}

}  // namespace stoker
