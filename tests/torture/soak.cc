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
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/options/options.h"
#include "engine/runtime/runtime_with_readers.h"
#include "io/folder/image_folder.h"
#include "tests/testing/process/process_usage.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/fake_reader.h"
#include "tests/testing/threads/executors.h"
#include "tests/torture/hang_watch.h"
#include "tests/torture/soak_job.h"

namespace stoker::testing {
namespace {

struct Arguments {
  std::string photos;
  uint64_t seconds = 60, seed = 1, first = 0, sets = ~uint64_t{0};
};

std::vector<uint8_t> Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One photograph in 37 is bad, with each class of faults in turn.
SoakStorage StorageOf(const std::string& folder) {
  SoakStorage storage;
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

std::shared_ptr<Runtime> RuntimeOf(const SoakStorage& storage, Draw& draw) {
  RuntimeOptions options = RuntimeUnderTest(1 + static_cast<int>(draw.Below(4)));
  const std::vector<TestedExecutor> executors = ExecutorsUnderTest();
  SetExecutor(executors[draw.Below(executors.size())], options);
  options.reader_threads = 1 + static_cast<int>(draw.Below(2));
  // Two iterators with the largest batches and the most workers need 77 MB.
  options.memory_budget = draw.Of<uint64_t>({80, 96, 256}) << 20;
  const uint32_t reads = static_cast<uint32_t>(1 + draw.Below(16));
  const uint64_t seed = draw.Below(1000);
  return RuntimeWithReaders(options,
                            [disk = storage.disk, reads, seed] {
                              return Result<std::unique_ptr<Reader>>(
                                  std::make_unique<FakeReader>(disk, reads, seed));
                            })
      .value();
}

LoaderOptions OptionsOf(const SoakStorage& storage, Draw& draw) {
  LoaderOptions options;
  options.source = storage.source;
  const int side = 16 + static_cast<int>(draw.Below(48));
  options.transforms = {RandomResizedCrop{.height = side, .width = side}, RandomHorizontalFlip{}};
  if (draw.Below(4) == 0) {  // several views instead of the one
    options.views = {std::exchange(options.transforms, {}),
                     {Resize{.height = 20, .width = 30}},
                     {RandomResizedCrop{.height = 12, .width = side}}};
  }
  options.dtype = draw.Of({DType::kU8, DType::kU8, DType::kF16, DType::kF32});
  options.layout = draw.Of({Layout::kNhwc, Layout::kNchw});
  options.batch_size = static_cast<uint32_t>(draw.Of<uint64_t>({1, 2, 7, 16, 33}));
  DrawOrder(draw, options);
  return options;
}

std::string RunSet(const SoakStorage& storage, Draw draw, SoakTotals& totals) {
  LoaderOptions options = OptionsOf(storage, draw);
  const auto runtimes = std::make_shared<Draw>(DrawKey{draw.Below(~uint64_t{0}), 0, 0});
  const auto runtime = [&storage, runtimes] { return RuntimeOf(storage, *runtimes); };
  return SoakJob({.loader = std::move(options), .runtime = runtime}, storage, draw, totals).Run();
}

struct Sample {
  double minutes;
  MemoryUsage memory;
};

double Kib(uint64_t bytes) { return static_cast<double>(bytes) / 1024; }

// Returns how much a kind of memory grew over the second half, in KiB a minute, by least squares.
double Slope(const std::vector<Sample>& all, uint64_t MemoryUsage::*kind) {
  const std::vector<Sample> half(all.begin() + static_cast<ptrdiff_t>(all.size() / 2), all.end());
  const auto n = static_cast<double>(half.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [minutes, memory] : half) {
    const double kib = Kib(memory.*kind);
    x += minutes;
    y += kib;
    xx += minutes * minutes;
    xy += minutes * kib;
  }
  const double spread = n * xx - x * x;
  return spread > 0 ? (n * xy - x * y) / spread : 0;
}

void Print(const SoakTotals& totals, const std::vector<Sample>& memory) {
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
      "%llu resumed, %llu restored, %llu sought, %llu by name, %llu beside, %llu interrupted, %llu "
      "stopped\n",
      static_cast<unsigned long long>(totals.resumed),
      static_cast<unsigned long long>(totals.restored),
      static_cast<unsigned long long>(totals.sought),
      static_cast<unsigned long long>(totals.by_name),
      static_cast<unsigned long long>(totals.beside),
      static_cast<unsigned long long>(totals.interrupted),
      static_cast<unsigned long long>(totals.stopped));
  const auto print = [&memory](const char* name, uint64_t MemoryUsage::*kind) {
    std::printf("%s: %.0f KiB at the end, %+.1f KiB a minute over the second half\n", name,
                Kib(memory.back().memory.*kind), Slope(memory, kind));
  };
  if (memory.back().memory.allocated != 0) print("allocated", &MemoryUsage::allocated);
  print("resident", &MemoryUsage::resident);
  std::printf("at the end: %d descriptors, %d threads\n", OpenDescriptors(), LiveThreads());
}

int Run(const Arguments& given) {
  std::optional<PhotoFolder> made;
  if (given.photos.empty()) made.emplace(200, 5);
  const SoakStorage storage = StorageOf(made ? made->path() : given.photos);
  const auto begun = std::chrono::steady_clock::now();
  const auto minutes = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() / 60;
  };
  SoakTotals totals;
  std::vector<Sample> memory;
  memory.reserve(size_t{1} << 18);  // so that it does not grow with what it measures
  HangWatch watch(given.seed, "set", std::chrono::minutes(5));
  for (uint64_t set = given.first; set - given.first < given.sets; ++set) {
    watch.Begin(set);
    const std::string wrong = RunSet(storage, Draw({given.seed, 0, set}), totals);
    if (!wrong.empty()) {
      std::printf("seed %llu, set %llu: %s\n", static_cast<unsigned long long>(given.seed),
                  static_cast<unsigned long long>(set), wrong.c_str());
      return 1;
    }
    memory.push_back({minutes(), MemoryNow()});
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
