#include "engine/pipeline/shared_loader.h"

#include <algorithm>
#include <utility>

namespace stoker {

namespace {

// Adds what one engine did; what is the Runtime's, or the same for all engines, is taken from it.
void AddStats(LoaderStats& all, const LoaderStats& one) {
  LoaderStats sum = one;
  sum.samples += all.samples;
  sum.bytes_read += all.bytes_read;
  sum.batches += all.batches;
  sum.stages.decode_ns += all.stages.decode_ns;
  sum.stages.resize_ns += all.stages.resize_ns;
  sum.work_ns += all.work_ns;
  sum.wait_ns += all.wait_ns;
  sum.decoded.fast += all.decoded.fast;
  for (size_t i = 0; i < kFallbacks; ++i) sum.decoded.fallback[i] += all.decoded.fallback[i];
  all = std::move(sum);
}

}  // namespace

Result<std::shared_ptr<SharedLoader>> SharedLoader::Open(LoaderOptions options,
                                                         std::shared_ptr<EpochCounter> epochs) {
  if (options.runtime == nullptr) {
    Result<std::shared_ptr<Runtime>> shared = Runtime::Default();
    if (!shared.ok()) return std::move(shared).error();
    options.runtime = *std::move(shared);
  }
  if (options.lent == nullptr) options.lent = std::make_shared<LentAccount>(options.lent_batches);
  if (epochs == nullptr) epochs = std::make_shared<EpochCounter>();
  std::shared_ptr<SharedLoader> made(new SharedLoader(std::move(options), std::move(epochs)));
  Result<Engine> first = made->OpenEngine();
  if (!first.ok()) return std::move(first).error();
  made->batches_per_epoch_ = first->loader->batches_per_epoch();
  made->last_rows_ = first->loader->last_rows();
  made->columns_ = first->loader->columns();
  made->idle_.push_back(*std::move(first));
  return made;
}

SharedLoader::SharedLoader(LoaderOptions options, std::shared_ptr<EpochCounter> epochs)
    : options_(std::move(options)), epochs_(std::move(epochs)) {}

SharedLoader::~SharedLoader() = default;

std::unique_ptr<Cursor> SharedLoader::Iterate(std::optional<uint64_t> epoch, bool repeat) {
  return std::unique_ptr<Cursor>(new Cursor(shared_from_this(), epoch, repeat));
}

Result<SharedLoader::Engine> SharedLoader::OpenEngine() {
  Result<std::unique_ptr<Loader>> loader = Loader::Open(options_);
  if (!loader.ok()) return std::move(loader).error();
  return Engine{.loader = *std::move(loader)};
}

bool SharedLoader::IdleAt(BatchName batch) const {
  return std::ranges::any_of(idle_, [&](const Engine& e) { return e.loader->position() == batch; });
}

// Under mutex_. One that is there already is best; else the one that was not used for longest.
std::optional<SharedLoader::Engine> SharedLoader::TakeIdle(BatchName batch, Schedule schedule,
                                                           bool spare) {
  auto best = std::ranges::find_if(idle_, [&](const Engine& e) {
    return e.schedule == schedule && e.loader->position() == batch;
  });
  if (best == idle_.end()) {
    best =
        std::ranges::find_if(idle_, [&](const Engine& e) { return e.loader->position() == batch; });
  }
  if (best == idle_.end()) {
    if (idle_.empty() || (spare && idle_.size() < kMostIdle)) return std::nullopt;
    best = idle_.begin();
  }
  Engine engine = std::move(*best);
  idle_.erase(best);
  return engine;
}

Result<SharedLoader::Engine> SharedLoader::Borrow(BatchName batch, Schedule schedule, bool spare) {
  if (Status s = options_.runtime->CheckProcess(); !s.ok()) return std::move(s).error();
  std::optional<Engine> engine;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
    engine = TakeIdle(batch, schedule, spare);
  }
  if (!engine) {
    Result<Engine> opened = OpenEngine();
    if (!opened.ok()) {
      std::lock_guard lock(mutex_);
      engine = TakeIdle(batch, schedule, /*spare=*/false);
      if (!engine) return opened;
    } else {
      engine = *std::move(opened);
    }
  }
  const bool there = schedule != Schedule::kAppended && engine->schedule == schedule &&
                     engine->loader->position() == batch;
  if (!there) {
    Status s = engine->loader->Seek(batch.epoch, batch.index, schedule);
    if (!s.ok()) {
      Return(*std::move(engine));
      return std::move(s).error();
    }
    engine->schedule = schedule;
  }
  std::lock_guard lock(mutex_);
  if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
  busy_.push_back(engine->loader.get());
  return *std::move(engine);
}

void SharedLoader::Return(Engine engine) {
  if (!options_.runtime->CheckProcess().ok()) {
    (void)engine.loader.release();  // a forked child's; nothing there may be locked or joined
    return;
  }
  Engine surplus;  // destroyed without the lock: that waits for samples in work
  std::lock_guard lock(mutex_);
  std::erase(busy_, engine.loader.get());
  idle_.push_back(std::move(engine));
  if (idle_.size() > kMostIdle || stopped_) {
    surplus = std::move(idle_.front());
    idle_.erase(idle_.begin());
    AddStats(past_, surplus.loader->Stats());
  }
}

Result<Batch> SharedLoader::BatchAt(BatchName batch, const Interrupt& interrupt) {
  if (Status s = options_.runtime->CheckProcess(); !s.ok()) return std::move(s).error();
  std::unique_lock lock(mutex_);
  while (!by_name_.wait_for(lock, kInterruptInterval, [this] { return !serving_by_name_; })) {
    lock.unlock();
    const bool interrupted = interrupt && interrupt();
    lock.lock();
    if (interrupted) return Error{Code::kCancelled, "the wait was interrupted"};
  }
  serving_by_name_ = true;
  const bool follows = batch.index == 0 || IdleAt(batch);
  lock.unlock();
  Result<Batch> made = MakeByName(batch, follows, interrupt);
  lock.lock();
  serving_by_name_ = false;
  by_name_.notify_one();
  lock.unlock();
  NoteLent();
  return made;
}

// `follows`: go on from there; else that one batch.
Result<Batch> SharedLoader::MakeByName(BatchName batch, bool follows, const Interrupt& interrupt) {
  const Schedule schedule = follows ? Schedule::kEpochs : Schedule::kAppended;
  Result<Engine> engine = Borrow(batch, schedule, /*spare=*/true);
  if (!engine.ok()) return std::move(engine).error();
  Loader& loader = *engine->loader;
  Status appended;
  if (!follows) appended = loader.Append(batch.epoch, batch.index);
  Result<Batch> made = Batch();
  if (appended.ok()) {
    const uint64_t before = loader.passed();
    made = loader.Next(interrupt);
    if (follows && loader.passed() != before && batch.index + 1 == batches_per_epoch_) {
      (void)loader.Next();  // says that the epoch has ended, and is done with it
    }
  } else {
    made = std::move(appended).error();
  }
  Return(*std::move(engine));
  return made;
}

void SharedLoader::NoteLent() {
  if (options_.lent_batches != 0) return;
  std::lock_guard lock(mutex_);
  if (warned_) return;
  const uint64_t lent = options_.lent->bytes();
  const uint64_t budget = options_.runtime->budget().limit();
  if (lent <= budget) return;
  warned_ = true;
  warning_ = "batches of " + std::to_string(lent) +
             " bytes are held outside stoker, more than the memory budget of " +
             std::to_string(budget) +
             " bytes (cache, shuffle and lists hold batches). Nothing limits it; set lent_batches "
             "to make it an error, or raise memory_budget to be silent";
}

std::optional<std::string> SharedLoader::TakeWarning() {
  std::lock_guard lock(mutex_);
  return std::exchange(warning_, std::nullopt);
}

void SharedLoader::Stop() {
  if (!options_.runtime->CheckProcess().ok()) return;
  std::vector<Engine> idle;
  std::lock_guard lock(mutex_);
  stopped_ = true;
  for (Loader* loader : busy_) loader->Stop();
  for (const Engine& engine : idle_) AddStats(past_, engine.loader->Stats());
  idle.swap(idle_);
}

LoaderStats SharedLoader::Stats() const {
  if (!options_.runtime->CheckProcess().ok()) return {};
  std::lock_guard lock(mutex_);
  LoaderStats all = past_;
  for (const Engine& engine : idle_) AddStats(all, engine.loader->Stats());
  for (const Loader* loader : busy_) AddStats(all, loader->Stats());
  all.lent_batches = options_.lent->batches();
  all.lent_bytes = options_.lent->bytes();
  return all;
}

}  // namespace stoker
