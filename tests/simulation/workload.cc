#include "tests/simulation/workload.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "core/memory/memory_budget.h"
#include "engine/memory/memory_manager.h"
#include "engine/memory/memory_plan.h"
#include "engine/runtime/runtime_with_readers.h"
#include "tests/simulation/late_reader.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/simulated_source.h"
#include "tests/testing/images/make_png.h"

namespace stoker::testing {

namespace {

constexpr int64_t kMapped = 1000;  // what the map function adds to a label

uint32_t PiecesOf(const SimulatedSource::Options& source) {
  return (source.pairs ? 2 : 1) * std::max(source.count, 1u);
}

// A time of up to `most`, often a short one.
uint64_t DrawTime(Draw& draw, uint64_t most) { return draw.Below(2) * (most >> draw.Below(16)); }

// Changes each label once.
class LabelMap final : public MapFunction {
 public:
  LabelMap(int calls, uint64_t work_ns) : calls_(calls), work_ns_(work_ns) {}
  std::string Describe() const override { return "add"; }
  int calls() const override { return calls_; }
  Status MapRow(const MappedRow& row) const override {
    SimulateWork(work_ns_);
    row.as<int64_t>(*row.column("label"))[0] += kMapped;
    return {};
  }
  Status MapBatch(const Batch& batch) const override {
    SimulateWork(work_ns_);
    for (int64_t& label : batch.column("label")->as<int64_t>()) label += kMapped;
    return {};
  }

 private:
  const int calls_;
  const uint64_t work_ns_;
};

// Sees to it that of loaders that are alike none waits while another gets ever more. It counts the
// samples of the other only while the waiting thread cannot run, because a thread that could has
// got its batch; and only if each thread that can run soon does.
class Fairness {
 public:
  Fairness(size_t loaders, uint64_t& most) : askers_(loaders), most_(most) {}

  void Ask(size_t loader) {
    askers_[loader] = {.thread = Scheduler::Running()->self(), .behind = 0};
  }

  void Get(size_t loader, uint64_t rows) {
    askers_[loader].thread = 0;
    Scheduler& running = *Scheduler::Running();
    for (size_t other = 0; other < askers_.size(); ++other) {
      Asker& asker = askers_[other];
      if (asker.thread == 0 || !running.WaitsForCondition(asker.thread)) continue;
      if (!running.is_fair()) continue;
      asker.behind += rows;
      most_ = std::max(most_, asker.behind);
      if (asker.behind <= kMostBehind) continue;
      running.Fail("loader " + std::to_string(other) +
                   " starves: it waits for a batch while loader " + std::to_string(loader) +
                   " gets " + std::to_string(asker.behind) + " samples");
    }
  }

 private:
  // Four workers take turns of 32 samples, and up to 20 rows are in production. 95 were seen in
  // 3,400 pairs.
  static constexpr uint64_t kMostBehind = 4 * 32 + 20;

  struct Asker {
    uint32_t thread = 0;  // 0: does not wait
    uint64_t behind = 0;
  };
  std::vector<Asker> askers_;
  uint64_t& most_;
};

// Batches that another thread destroys. It waits without a time limit, so that the scheduler sees
// when only time limits are left.
class Bin {
 public:
  void Put(Batch batch) {
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
    changed_.notify_one();
  }
  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }
  // Returns after End.
  void Empty() {
    std::unique_lock lock(mutex_);
    while (!ended_ || !batches_.empty()) {
      changed_.wait(lock, [this] { return ended_ || !batches_.empty(); });
      std::vector<Batch> batches;
      batches.swap(batches_);
      lock.unlock();
      SimulateWork(10'000'000);
      batches.clear();
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Batch> batches_;
  bool ended_ = false;
};

class Workload {
 public:
  Workload(uint64_t seed, const std::vector<std::vector<uint8_t>>& images, WorkloadTotals& totals)
      : draw_({seed, 0, 0}), seed_(seed), images_(images), totals_(totals) {}

  void Run();

 private:
  struct Loading {
    SoakStorage storage;
    LoaderOptions options;
    SoakTotals totals;
    std::string wrong;
    bool mapped = false;
    uint64_t most_lives = 3, most_steps = 24;
    double seeks = 0.05;
    uint64_t think_ns = 0;  // of the consumer, for each batch
  };

  void DrawLoading(size_t number, const std::shared_ptr<FakeDisk>& disk);
  void AddSamples(const SimulatedSource::Options& source, FakeDisk& disk, Faults& faults);
  std::shared_ptr<Runtime> MakeRuntime(const std::shared_ptr<const FakeDisk>& disk);
  SoakHooks HooksOf(size_t number, Draw& draw);
  void RunJob(size_t number, Draw draw);
  void RunJobs();
  void DrawAlike(FakeDisk& disk);
  void TakeBatches(size_t number, Fairness& fairness);
  void RunAlike();
  void Check() const;

  Draw draw_;
  const uint64_t seed_;
  const std::vector<std::vector<uint8_t>>& images_;
  WorkloadTotals& totals_;
  int threads_ = 1;
  bool alike_ = false;        // RunAlike
  uint32_t most_pieces_ = 1;  // of a loader's samples
  std::vector<Loading> loadings_;
  std::shared_ptr<Runtime> runtime_;
  Bin bin_;
};

// An image in nine is bad, in samples of many images fewer; a few, one of a sample at most, take a
// large part of the memory. The fault of a sample is that of its first bad image.
void Workload::AddSamples(const SimulatedSource::Options& source, FakeDisk& disk, Faults& faults) {
  const uint64_t share = 2 * kReadBufferBytes + static_cast<uint64_t>(threads_) * kWorkspaceBytes;
  const bool is_heavy = draw_.Chance(0.4);
  const bool has_faults = draw_.Chance(0.6);
  const uint32_t pieces = PiecesOf(source);
  std::set<uint64_t> heavy;
  for (uint64_t file = 0; file < pieces * source.size; ++file) {
    const uint64_t id = file % source.size;
    const std::string path = SimulatedSource::PathIn(source.name, file);
    std::vector<uint8_t>& bytes = disk.files[path] = images_[file % images_.size()];
    if (is_heavy && !heavy.contains(id) && draw_.Chance(0.3)) {
      heavy.insert(id);
      disk.room[path] = share / (1 + draw_.Below(3)) - (64 << 10);
    }
    if (!has_faults || !draw_.Chance(pieces > 2 ? 0.04 : 0.11)) continue;
    switch (draw_.Below(4)) {
      case 0:
        faults.emplace(id, SampleFault::kUndecodable);
        bytes.assign(100, 'x');
        break;
      case 1:
        faults.emplace(id, SampleFault::kTruncated);
        bytes.resize(60);
        break;
      case 2:
        faults.emplace(id, SampleFault::kVanished);
        disk.faults[path] = {.error_number = ENOENT};
        break;
      default:
        faults.emplace(id, SampleFault::kUnreadable);
        disk.faults[path] = {.error_number = EIO};
    }
  }
}

void Workload::DrawLoading(size_t number, const std::shared_ptr<FakeDisk>& disk) {
  Loading& loading = loadings_[number];
  const std::string name = "loader" + std::to_string(number);
  using Kind = SimulatedSource::Kind;
  const Kind kind = draw_.Of({Kind::kFiles, Kind::kFiles, Kind::kCalls, Kind::kMemory});
  // Each of up to 8 ranks has a sample. In wide ones more samples are in flight than a word has
  // bits.
  const bool is_wide = draw_.Chance(0.1);
  const uint64_t size = is_wide ? 150 + draw_.Below(200) : 8 + draw_.Below(40);
  const SimulatedSource::Options source{.kind = kind,
                                        .name = name,
                                        .size = size,
                                        .pairs = kind == Kind::kFiles && draw_.Chance(0.3),
                                        .count = kind == Kind::kFiles && draw_.Chance(0.3)
                                                     ? 1 + static_cast<uint32_t>(draw_.Below(3))
                                                     : 0,
                                        .objects = size % 3 == 0,
                                        .calls = 1 + static_cast<int>(draw_.Below(3)),
                                        .work_ns = DrawTime(draw_, 4'000'000),
                                        .call_ns = DrawTime(draw_, 4'000'000)};
  AddSamples(source, *disk, loading.storage.faults);
  if (kind == Kind::kMemory) loading.storage.faults.clear();
  most_pieces_ = std::max(most_pieces_, PiecesOf(source));
  loading.storage.source = std::make_shared<SimulatedSource>(source, disk);
  LoaderOptions& options = loading.options;
  options.source = loading.storage.source;
  options.batch_size = static_cast<uint32_t>(is_wide ? 40 : draw_.Of<uint64_t>({1, 2, 3, 5, 8}));
  loading.most_steps = is_wide ? 6 : 24;
  if (kind != Kind::kMemory) {
    options.transforms = {RandomResizedCrop{.height = 4, .width = 4}, RandomHorizontalFlip{}};
  }
  DrawOrder(draw_, options);
  options.weight = draw_.Of({1.0, 1.0, 3.0});
  if (draw_.Chance(0.2)) {  // lives are short: most end soon after a Seek
    loading.most_lives = 12;
    loading.most_steps = 4;
    loading.seeks = 0.5;
    options.lent_batches = 1;
  }
  loading.think_ns = DrawTime(draw_, 8'000'000);
  loading.mapped = draw_.Chance(0.25);
  if (!loading.mapped) return;
  options.map =
      std::make_shared<LabelMap>(static_cast<int>(draw_.Below(3)), DrawTime(draw_, 4'000'000));
}

std::shared_ptr<Runtime> Workload::MakeRuntime(const std::shared_ptr<const FakeDisk>& disk) {
  RuntimeOptions options{
      .threads = threads_, .reader = ReaderKind::kPread, .executor = ExecutorKind::kThreads};
  options.reader_threads = 1 + static_cast<int>(draw_.Below(2));
  const auto reads = static_cast<uint32_t>(draw_.Of<uint64_t>({1, 2, 4, 8, 16}));
  if (draw_.Chance(0.5)) options.reads_in_flight = reads;
  // What the loaders need at least, and more or less room besides.
  const uint64_t samples = uint64_t{std::max(2u, most_pieces_)} * kReadBufferBytes +
                           static_cast<uint64_t>(threads_) * (kWorkspaceBytes + (256 << 10));
  const uint64_t batches = 6 * (64 << 10);
  options.memory_budget =
      loadings_.size() * (samples + batches) * draw_.Of<uint64_t>({8, 8, 9, 12, 64}) / 8;
  options.stall_seconds = draw_.Of({0.0, 0.2, 30.0});
  options.log = [](const std::string&) {};
  // Loaders that are alike are compared, so none should be unlucky for long.
  const uint64_t longest_ns = DrawTime(draw_, alike_ ? 200'000 : 200'000'000);
  const bool blocks = draw_.Chance(0.2);
  const auto make_reader = [disk, reads, longest_ns, blocks, seed = seed_] {
    return Result<std::unique_ptr<Reader>>(
        std::make_unique<LateReader>(disk, reads, seed, longest_ns, blocks));
  };
  const bool tune_workers = draw_.Chance(0.5);
  return RuntimeWithReaders(options, make_reader, tune_workers).value();
}

namespace {

// Expects that each row has the objects of its sample.
void CheckObjects(const Batch& batch, const Column& objects) {
  for (int64_t row = 0; row < batch.rows(); ++row) {
    const uint64_t id = batch.sample_ids()[static_cast<size_t>(row)];
    const std::span<const int64_t> of_row = objects.objects<const int64_t>(row);
    bool are_own = of_row.size() == SimulatedSource::ObjectsOf(id);
    for (size_t i = 0; i < of_row.size(); ++i) {
      are_own = are_own && of_row[i] == static_cast<int64_t>(id * 10 + i);
    }
    if (are_own) continue;
    Scheduler::Running()->Fail("row " + std::to_string(row) +
                               " has objects that are not those of "
                               "sample " +
                               std::to_string(id));
  }
}

}  // namespace

SoakHooks Workload::HooksOf(size_t number, Draw& draw) {
  const Loading& loading = loadings_[number];
  SoakHooks hooks;
  hooks.step = [&loading] { SimulateWork(loading.think_ns); };
  hooks.gets = [&loading](Result<Batch>& batch) {
    if (!batch.ok() || !*batch) return;
    if (const Column* const objects = batch->column("objects")) CheckObjects(*batch, *objects);
    if (!loading.mapped) return;
    for (int64_t& label : batch->column("label")->as<int64_t>()) label -= kMapped;
  };
  if (draw.Chance(0.5)) hooks.discard = [this](Batch batch) { bin_.Put(std::move(batch)); };
  return hooks;
}

void Workload::RunJob(size_t number, Draw draw) {
  Loading& loading = loadings_[number];
  SoakHooks hooks = HooksOf(number, draw);
  SoakJob job({.loader = loading.options,
               .runtime = [this] { return runtime_; },
               .most_lives = loading.most_lives,
               .most_steps = loading.most_steps,
               .seeks = loading.seeks,
               .may_be_refused = true,
               .hooks = std::move(hooks)},
              loading.storage, draw, loading.totals);
  loading.wrong = job.Run();
  if (loading.wrong.empty()) return;
  Scheduler::Running()->Fail("loader " + std::to_string(number) + ": " + loading.wrong);
}

// Each loader has a consumer that does what it likes.
void Workload::RunJobs() {
  std::vector<std::thread> jobs;
  for (size_t i = 0; i < loadings_.size(); ++i) {
    const Draw draw({draw_.Below(~uint64_t{0}), 0, 0});
    jobs.emplace_back([this, i, draw] { RunJob(i, draw); });
  }
  std::thread emptier([this] { bin_.Empty(); });
  for (std::thread& job : jobs) job.join();
  bin_.End();
  emptier.join();
}

// Two loaders that differ in nothing but their samples, of which none is bad.
void Workload::DrawAlike(FakeDisk& disk) {
  SimulatedSource::Options source{
      .kind = draw_.Of({SimulatedSource::Kind::kFiles, SimulatedSource::Kind::kFiles,
                        SimulatedSource::Kind::kMemory}),
      .size = 40,
      .work_ns = DrawTime(draw_, 200'000)};
  LoaderOptions options;
  options.batch_size = static_cast<uint32_t>(draw_.Of<uint64_t>({1, 2, 5}));
  if (source.kind == SimulatedSource::Kind::kFiles) {
    options.transforms = {RandomResizedCrop{.height = 4, .width = 4}};
  }
  options.depth = 1 + static_cast<int>(draw_.Below(4));
  for (size_t i = 0; i < loadings_.size(); ++i) {
    source.name = "loader" + std::to_string(i);
    for (uint64_t id = 0; id < source.size; ++id) {
      disk.files[SimulatedSource::PathIn(source.name, id)] = images_[id];
    }
    loadings_[i].options = options;
    loadings_[i].options.source = std::make_shared<SimulatedSource>(source, nullptr);
  }
}

void Workload::TakeBatches(size_t number, Fairness& fairness) {
  constexpr uint64_t kSamples = 400;
  LoaderOptions options = loadings_[number].options;
  options.runtime = runtime_;
  const auto loader = Loader::Open(std::move(options));
  if (!loader.ok()) return;  // it is refused
  auto batches = (*loader)->Iterate();
  for (uint64_t samples = 0; samples < kSamples;) {
    fairness.Ask(number);
    const Result<Batch> batch = batches->Next();
    if (!batch.ok()) Scheduler::Running()->Fail(batch.error().ToString());
    if (!*batch) batches = (*loader)->Iterate();
    const uint64_t rows = *batch ? static_cast<uint64_t>(batch->rows()) : 0;
    fairness.Get(number, rows);
    samples += rows;
  }
}

void Workload::RunAlike() {
  Fairness fairness(loadings_.size(), totals_.most_behind);
  std::thread other([this, &fairness] { TakeBatches(1, fairness); });
  TakeBatches(0, fairness);
  other.join();
  totals_.alike += 1;
}

void Workload::Run() {
  threads_ = 1 + static_cast<int>(draw_.Below(4));
  alike_ = draw_.Chance(0.15);
  loadings_.resize(alike_ ? 2 : draw_.Of<size_t>({1, 1, 2, 3}));
  auto disk = std::make_shared<FakeDisk>();
  disk->at_once = draw_.Of({0.0, 0.5, 0.9});
  disk->longest_delay = 1 + static_cast<uint32_t>(draw_.Below(8));
  if (alike_) {
    DrawAlike(*disk);
  } else {
    for (size_t i = 0; i < loadings_.size(); ++i) DrawLoading(i, disk);
  }
  for (Loading& loading : loadings_) loading.storage.disk = disk;
  runtime_ = MakeRuntime(disk);
  alike_ ? RunAlike() : RunJobs();
  Check();
  totals_.loaders += loadings_.size();
  totals_.samples_waited += runtime_->memory().samples_waited();
  for (const Loading& loading : loadings_) totals_.jobs += loading.totals;
}

void Workload::Check() const {
  const uint64_t used = runtime_->budget().used();
  if (used == 0) return;
  Scheduler::Running()->Fail(std::to_string(used) + " bytes of the budget are in use at the end");
}

}  // namespace

std::vector<std::vector<uint8_t>> WorkloadImages() {
  std::vector<std::vector<uint8_t>> images;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    images.push_back(MakePng({.width = 5, .height = 4, .seed = seed}));
  }
  return images;
}

void RunWorkload(uint64_t seed, const std::vector<std::vector<uint8_t>>& images,
                 WorkloadTotals& totals) {
  Workload(seed, images, totals).Run();
}

}  // namespace stoker::testing
