#include "engine/loader/shared_loader.h"

#include <algorithm>
#include <utility>

#include "core/try.h"
#include "engine/loader/cursor.h"

namespace stoker {

Result<std::shared_ptr<SharedLoader>> SharedLoader::Open(LoaderOptions options,
                                                         std::shared_ptr<EpochCounter> epochs) {
  if (options.lent == nullptr) options.lent = std::make_shared<LentAccount>(options.lent_batches);
  if (epochs == nullptr) epochs = std::make_shared<EpochCounter>();
  ASSIGN_OR_RETURN(std::unique_ptr<Loader> first, Loader::Open(std::move(options)));
  const Loader& loader = *first;
  // Its options: the Runtime is filled in.
  std::shared_ptr<SharedLoader> made(new SharedLoader(loader.options(), std::move(epochs)));
  made->batches_per_epoch_ = loader.batches_per_epoch();
  made->last_rows_ = loader.last_rows();
  made->depth_ = loader.Stats().depth;
  made->columns_ = loader.columns();
  made->idle_.reserve(kMostIdle + 1);
  made->idle_.push_back({.loader = std::move(first)});
  return made;
}

SharedLoader::SharedLoader(LoaderOptions options, std::shared_ptr<EpochCounter> epochs)
    : options_(std::move(options)), epochs_(std::move(epochs)) {}

SharedLoader::~SharedLoader() = default;

std::unique_ptr<Cursor> SharedLoader::Iterate(std::optional<uint64_t> epoch, bool repeat) {
  return std::unique_ptr<Cursor>(new Cursor(shared_from_this(), epoch, repeat));
}

Result<SharedLoader::Engine> SharedLoader::OpenEngine() {
  ASSIGN_OR_RETURN(std::unique_ptr<Loader> loader, Loader::Open(options_));
  return Engine{.loader = std::move(loader)};
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

SharedLoader::Lease& SharedLoader::Lease::operator=(Lease&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(engine_, other.engine_);
  return *this;
}

SharedLoader::Lease::~Lease() {
  if (engine_.loader != nullptr) owner_->Return(std::move(engine_));
}

// One that is idle, or a new one.
Result<SharedLoader::Lease> SharedLoader::FindEngine(BatchName batch, Schedule schedule,
                                                     bool spare) {
  const auto lend = [this](Engine engine) -> Result<Lease> {  // under mutex_
    if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
    busy_.push_back(engine.loader.get());
    return Lease(this, std::move(engine));
  };
  std::unique_lock lock(mutex_);
  if (stopped_) return Error{Code::kCancelled, "the loader was stopped"};
  std::optional<Engine> idle = TakeIdle(batch, schedule, spare);
  if (idle) return lend(*std::move(idle));
  lock.unlock();
  Result<Engine> opened = OpenEngine();
  lock.lock();
  if (opened.ok()) return lend(*std::move(opened));
  idle = TakeIdle(batch, schedule, /*spare=*/false);
  if (idle) return lend(*std::move(idle));
  return std::move(opened).error();
}

Result<SharedLoader::Lease> SharedLoader::Borrow(BatchName batch, Schedule schedule, bool spare) {
  TRY(options_.runtime->CheckProcess());
  Result<Lease> lease = FindEngine(batch, schedule, spare);
  if (!lease.ok()) return lease;
  const bool there = schedule != Schedule::kAppended && lease->schedule() == schedule &&
                     lease->loader().position() == batch;
  if (!there) {
    if (Status s = lease->Seek(batch, schedule); !s.ok()) return std::move(s).error();
  }
  return lease;
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
  TRY(options_.runtime->CheckProcess());
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
  const auto served = [this](void*) {
    {
      std::lock_guard done(mutex_);
      serving_by_name_ = false;
    }
    by_name_.notify_one();
  };
  const std::unique_ptr<void, decltype(served)> serving(this, served);  // also when it throws
  Result<Batch> made = MakeByName(batch, follows, interrupt);
  if (made.ok()) NoteLent();
  return made;
}

// `follows`: go on from there; else that one batch.
Result<Batch> SharedLoader::MakeByName(BatchName batch, bool follows, const Interrupt& interrupt) {
  const Schedule schedule = follows ? Schedule::kEpochs : Schedule::kAppended;
  ASSIGN_OR_RETURN(Lease lease, Borrow(batch, schedule, /*spare=*/true));
  Loader& loader = lease.loader();
  if (!follows) {
    if (Status s = loader.Append(batch.epoch, batch.index); !s.ok()) return std::move(s).error();
  }
  const uint64_t before = loader.passed();
  Result<Batch> made = loader.Next(interrupt);
  if (follows && loader.passed() != before && batch.index + 1 == batches_per_epoch_) {
    (void)loader.Next();  // says that the epoch has ended, and is done with it
  }
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
  if (!options_.runtime->CheckProcess().ok()) return std::nullopt;
  std::lock_guard lock(mutex_);
  return std::exchange(warning_, std::nullopt);
}

void SharedLoader::LetIdleGo() {
  if (!options_.runtime->CheckProcess().ok()) return;
  std::vector<Engine> idle;  // destroyed without the lock: that waits for samples in work
  std::lock_guard lock(mutex_);
  for (const Engine& engine : idle_) AddStats(past_, engine.loader->Stats());
  idle.swap(idle_);
}

void SharedLoader::Stop() {
  if (!options_.runtime->CheckProcess().ok()) return;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    for (Loader* loader : busy_) loader->Stop();
  }
  LetIdleGo();
}

LoaderStats SharedLoader::Stats() const {
  if (!options_.runtime->CheckProcess().ok()) return {};
  std::lock_guard lock(mutex_);
  LoaderStats all = past_;
  all.pinned_bytes = 0;  // those have been given back
  for (const Engine& engine : idle_) AddStats(all, engine.loader->Stats());
  for (const Loader* loader : busy_) AddStats(all, loader->Stats());
  all.lent_batches = options_.lent->batches();
  all.lent_bytes = options_.lent->bytes();
  all.memory_used = options_.runtime->budget().used();  // also where no engine is there to say so
  all.memory_peak = options_.runtime->budget().peak();
  return all;
}

}  // namespace stoker
