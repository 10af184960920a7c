// Compresses hours of training into minutes: loaders with random options over photographs, some of
// which are bad, on storage that answers late, out of order and with errors, are stopped, resumed,
// moved and dropped, while a model computes what each batch must be.
//
//     soak [PHOTOS] [--seconds N] [--seed N] [--first N] [--sets N]
//
// PHOTOS: a folder of class folders, which is read into memory; by default 200 small photographs
// that it makes. Ends with 1 at the first batch that is not
// as expected, and names the seed and the set of options, which --first N --sets 1 replays. Prints
// what was served, and how the memory of the process grew over the second half of the run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/random.h"
#include "engine/loader/loader.h"
#include "engine/runtime/runtime_with_readers.h"
#include "io/sources/image_folder.h"
#include "tests/testing/executors.h"
#include "tests/testing/fake_reader.h"
#include "tests/testing/photo_folder.h"
#include "tests/testing/process_usage.h"
#include "tests/torture/hang_watch.h"
#include "tests/torture/soak_model.h"

namespace stoker::testing {
namespace {

struct Arguments {
  std::string photos;
  uint64_t seconds = 60, seed = 1, first = 0, sets = ~uint64_t{0};
};

struct Totals {
  uint64_t sets = 0, batches = 0, samples = 0, rows_decoded_again = 0;
  uint64_t failed = 0, substituted = 0, dropped = 0;
  uint64_t resumed = 0, sought = 0, interrupted = 0, by_name = 0, beside = 0, stopped = 0;
};

// The photographs, and the numbers of the bad ones.
struct Storage {
  std::shared_ptr<const SampleSource> source;
  std::shared_ptr<const FakeDisk> disk;
  Faults faults;
};

std::vector<uint8_t> Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One photograph in 37 is bad, with each class of faults in turn.
Storage StorageOf(const std::string& folder) {
  Storage storage;
  storage.source = ImageFolder(folder).value();
  auto disk = std::make_shared<FakeDisk>();
  for (uint64_t id = 0; id < storage.source->size(); ++id) {
    std::string path;
    storage.source->PathOf(storage.source->RangeOf(id).file, path);
    std::vector<uint8_t>& bytes = disk->files[path] = Content(path);
    if (id % 37 != 5) continue;
    switch (id / 37 % 4) {
      case 0:
        storage.faults[id] = SampleFault::kUndecodable;
        bytes.assign(100, 'x');
        break;
      case 1:
        storage.faults[id] = SampleFault::kTruncated;
        bytes.resize(100);
        break;
      case 2:
        storage.faults[id] = SampleFault::kVanished;
        disk->faults[path] = {.error_number = ENOENT};
        break;
      default:
        storage.faults[id] = SampleFault::kUnreadable;
        disk->faults[path] = {.error_number = EIO};
    }
  }
  storage.disk = std::move(disk);
  return storage;
}

// Random numbers of one set.
class Draw {
 public:
  explicit Draw(DrawKey key) : random_(key, 0) {}
  uint64_t Below(uint64_t n) { return random_.Below(n); }
  bool Chance(double p) { return random_.Uniform() < p; }
  template <typename Value>
  Value Of(std::initializer_list<Value> values) {
    return values.begin()[Below(values.size())];
  }

 private:
  RandomStream random_;
};

std::shared_ptr<Runtime> RuntimeOf(const Storage& storage, Draw& draw) {
  RuntimeOptions options = RuntimeUnderTest(1 + static_cast<int>(draw.Below(4)));
  const std::vector<ExecutorKind> executors = ExecutorsUnderTest();
  options.executor = executors[draw.Below(executors.size())];
  options.reader_threads = 1 + static_cast<int>(draw.Below(2));
  options.memory_budget = draw.Of<uint64_t>({48, 64, 256}) << 20;
  const uint32_t reads = static_cast<uint32_t>(1 + draw.Below(16));
  const uint64_t seed = draw.Below(1000);
  return RuntimeWithReaders(options,
                            [disk = storage.disk, reads, seed] {
                              return Result<std::unique_ptr<Reader>>(
                                  std::make_unique<FakeReader>(disk, reads, seed));
                            })
      .value();
}

// Returns options that make the same batches for any Runtime and depth.
LoaderOptions OptionsOf(const Storage& storage, Draw& draw) {
  LoaderOptions options;
  options.source = storage.source;
  const int side = 16 + static_cast<int>(draw.Below(48));
  options.transforms = {RandomResizedCrop{.height = side, .width = side}, RandomHorizontalFlip{}};
  options.dtype = draw.Of({DType::kU8, DType::kU8, DType::kF16, DType::kF32});
  options.layout = draw.Of({Layout::kNhwc, Layout::kNchw});
  options.batch_size = static_cast<uint32_t>(draw.Of<uint64_t>({1, 2, 7, 16, 33}));
  options.shuffle = draw.Chance(0.8);
  options.seed = draw.Below(1000);
  options.world = static_cast<uint32_t>(draw.Of<uint64_t>({1, 1, 2, 3, 8}));
  options.rank = static_cast<uint32_t>(draw.Below(options.world));
  options.remainder = draw.Of({Remainder::kUneven, Remainder::kDrop, Remainder::kPad});
  const uint64_t step = uint64_t{options.batch_size} * options.world;
  options.drop_remainder = draw.Chance(0.2) && step <= storage.source->size();
  options.on_bad =
      BadPolicy::Parse(draw.Of<const char*>({"fail", "substitute", "drop", "substitute",
                                             "undecodable=drop,truncated=substitute",
                                             "vanished=drop,unreadable=drop,truncated=drop"}))
          .value();
  options.max_bad_fraction = 1;
  options.lent_batches = 0;
  return options;
}

// One set of options: a job that is stopped and resumed until it has taken enough batches.
class Job {
 public:
  Job(const Storage& storage, Draw draw, Totals& totals)
      : storage_(storage),
        draw_(draw),
        options_(OptionsOf(storage, draw_)),
        model_(options_, *storage.disk, storage.faults),
        totals_(totals) {}

  // Returns "" or what was wrong.
  std::string Run() {
    for (uint64_t life = 1 + draw_.Below(4); life > 0 && wrong_.empty(); --life) Live();
    ++totals_.sets;
    return wrong_;
  }

 private:
  // Runs from opening a loader to its end, which leaves the position to the next loader.
  void Live() {
    LoaderOptions options = options_;
    options.runtime = RuntimeOf(storage_, draw_);
    options.depth = static_cast<int>(draw_.Below(6));
    auto loader = Loader::Open(std::move(options));
    if (!loader.ok()) return Wrong(loader.error().ToString());
    loader_ = *std::move(loader);
    iterator_ = loader_->Iterate();
    Seek(at_);
    totals_.resumed += 1;
    for (uint64_t steps = draw_.Below(60); steps > 0 && wrong_.empty(); --steps) Step();
    if (draw_.Chance(0.2)) Stop();
    if (draw_.Chance(0.5)) held_.clear();  // else the batches outlive their loader
    if (draw_.Chance(0.5)) loader_.reset();
    iterator_.reset();
    loader_.reset();
  }

  void Step() {
    if (draw_.Chance(0.05)) {
      ++totals_.sought;
      Seek({draw_.Below(5), draw_.Below(model_.batches_per_epoch())});
    }
    if (draw_.Chance(0.03)) ByName();
    if (draw_.Chance(0.03)) Beside();
    if (draw_.Chance(0.03)) Interrupted();
    Next(*iterator_, at_);
    held_.resize(std::min<size_t>(held_.size(), draw_.Below(4)));
  }

  void Seek(BatchName to) {
    const Status sought = iterator_->Seek(to);
    if (!sought.ok()) Wrong(sought.error().ToString());
    at_ = to;
  }

  // Takes the iterator's next batch, which must be the first one from `at` on that is delivered.
  void Next(Iterator& iterator, BatchName& at) {
    if (at.index == model_.batches_per_epoch()) {
      at = {at.epoch + 1, 0};
      if (!iterator.Seek(at).ok()) Wrong("Seek to the next epoch failed");
    }
    Result<Batch> batch = iterator.Next();
    while (at.index < model_.batches_per_epoch()) {
      const ExpectedBatch expected = model_.At(at);
      totals_.dropped += expected.fails ? 0 : expected.dropped;
      if (!expected.fails && expected.rows.empty()) {
        ++at.index;
        continue;
      }
      Check(std::move(batch), at, expected);
      ++at.index;
      break;
    }
    const auto position = iterator.position();
    if (!position || *position != at) Wrong("the iterator is at another batch");
  }

  void Check(Result<Batch> batch, BatchName name, const ExpectedBatch& expected) {
    ++totals_.batches;
    if (expected.fails) {
      ++totals_.failed;
      if (batch.ok()) return Wrong(name, "it was delivered, with a sample that is bad");
      if (!FaultOf(batch.error())) Wrong(name, batch.error().ToString());
      return;
    }
    if (!batch.ok()) return Wrong(name, batch.error().ToString());
    if (!*batch) return Wrong(name, "it is missing");
    if (batch->name() != name) return Wrong(name, "another batch came");
    if (std::string different = model_.Differs(*batch, expected, 2); !different.empty()) {
      return Wrong(name, different);
    }
    totals_.samples += expected.rows.size();
    totals_.substituted += expected.substituted;
    totals_.rows_decoded_again += std::min<size_t>(2, expected.rows.size());
    held_.push_front(*std::move(batch));
  }

  void ByName() {
    ++totals_.by_name;
    const BatchName name{draw_.Below(5), draw_.Below(model_.batches_per_epoch())};
    const ExpectedBatch expected = model_.At(name);
    totals_.dropped += expected.fails ? 0 : expected.dropped;
    Check(loader_->BatchAt(name), name, expected);
  }

  // Runs a second iteration beside the first one.
  void Beside() {
    ++totals_.beside;
    const auto second = loader_->Iterate();
    BatchName at{draw_.Below(5), draw_.Below(model_.batches_per_epoch())};
    if (!second->Seek(at).ok()) return Wrong("Seek of a second iterator failed");
    for (uint64_t batches = 1 + draw_.Below(5); batches > 0; --batches) Next(*second, at);
  }

  // A wait that is interrupted loses nothing: the batch comes later.
  void Interrupted() {
    if (at_.index == model_.batches_per_epoch()) return;
    const ExpectedBatch expected = model_.At(at_);
    if (expected.fails || expected.rows.empty()) return;
    Result<Batch> batch = iterator_->Next([] { return true; });
    if (!batch.ok() && batch.error().code == Code::kCancelled) {
      ++totals_.interrupted;
      return;
    }
    totals_.dropped += expected.dropped;
    Check(std::move(batch), at_, expected);
    ++at_.index;
  }

  // Stops the loader while another thread waits for a batch.
  void Stop() {
    ++totals_.stopped;
    std::thread stopper([this] { loader_->Stop(); });
    while (true) {
      const Result<Batch> batch = iterator_->Next();
      if (!batch.ok() && batch.error().code == Code::kCancelled) break;
      if (batch.ok() && !*batch) break;  // the end of the epoch came first
    }
    stopper.join();
  }

  void Wrong(BatchName name, const std::string& what) {
    Wrong("batch " + std::to_string(name.index) + " of epoch " + std::to_string(name.epoch) + ": " +
          what);
  }
  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  const Storage& storage_;
  Draw draw_;
  const LoaderOptions options_;
  SoakModel model_;
  Totals& totals_;
  std::shared_ptr<Loader> loader_;
  std::unique_ptr<Iterator> iterator_;
  std::deque<Batch> held_;  // the newest first
  BatchName at_;            // the next batch
  std::string wrong_;
};

struct Sample {
  double minutes;
  double kib;
};

// Returns KiB per minute, by least squares over the second half.
double Slope(const std::vector<Sample>& all) {
  const std::vector<Sample> half(all.begin() + static_cast<ptrdiff_t>(all.size() / 2), all.end());
  const auto n = static_cast<double>(half.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [minutes, kib] : half) {
    x += minutes;
    y += kib;
    xx += minutes * minutes;
    xy += minutes * kib;
  }
  const double spread = n * xx - x * x;
  return spread > 0 ? (n * xy - x * y) / spread : 0;
}

void Print(const Totals& totals, const std::vector<Sample>& memory) {
  std::printf("%llu sets, %llu batches, %llu samples; %llu rows decoded again and compared\n",
              static_cast<unsigned long long>(totals.sets),
              static_cast<unsigned long long>(totals.batches),
              static_cast<unsigned long long>(totals.samples),
              static_cast<unsigned long long>(totals.rows_decoded_again));
  std::printf("bad samples: %llu batches failed, %llu rows substituted, %llu dropped\n",
              static_cast<unsigned long long>(totals.failed),
              static_cast<unsigned long long>(totals.substituted),
              static_cast<unsigned long long>(totals.dropped));
  std::printf(
      "%llu resumed, %llu sought, %llu by name, %llu beside, %llu interrupted, %llu stopped\n",
      static_cast<unsigned long long>(totals.resumed),
      static_cast<unsigned long long>(totals.sought),
      static_cast<unsigned long long>(totals.by_name),
      static_cast<unsigned long long>(totals.beside),
      static_cast<unsigned long long>(totals.interrupted),
      static_cast<unsigned long long>(totals.stopped));
  std::printf("resident: %.0f KiB at the end, %+.1f KiB a minute over the second half\n",
              memory.back().kib, Slope(memory));
  std::printf("at the end: %d descriptors, %d threads\n", OpenDescriptors(), LiveThreads());
}

int Run(const Arguments& given) {
  std::optional<PhotoFolder> made;
  if (given.photos.empty()) made.emplace(200, 5);
  const Storage storage = StorageOf(made ? made->path() : given.photos);
  const auto begun = std::chrono::steady_clock::now();
  const auto minutes = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() / 60;
  };
  Totals totals;
  std::vector<Sample> memory;
  HangWatch watch(given.seed, "set", std::chrono::minutes(5));
  for (uint64_t set = given.first; set - given.first < given.sets; ++set) {
    watch.Begin(set);
    const std::string wrong = Job(storage, Draw({given.seed, 0, set}), totals).Run();
    if (!wrong.empty()) {
      std::printf("seed %llu, set %llu: %s\n", static_cast<unsigned long long>(given.seed),
                  static_cast<unsigned long long>(set), wrong.c_str());
      return 1;
    }
    memory.push_back({minutes(), static_cast<double>(MemoryNow().resident) / 1024});
    if (minutes() * 60 >= static_cast<double>(given.seconds)) break;
  }
  Print(totals, memory);
  return 0;
}

}  // namespace
}  // namespace stoker::testing

int main(int argc, char** argv) {
  stoker::testing::Arguments given;
  CLI::App app("Loaders with random options, faults and interruptions, against a model.");
  app.add_option("PHOTOS", given.photos, "a folder of class folders");
  app.add_option("--seconds", given.seconds, "how long");
  app.add_option("--seed", given.seed, "of everything that is random");
  app.add_option("--first", given.first, "the first set of options");
  app.add_option("--sets", given.sets, "at most so many");
  CLI11_PARSE(app, argc, argv);
  return stoker::testing::Run(given);
}
