// Compares tuned settings with all fixed settings, on real photographs.
//
//   tuner_bench PHOTOS [--workload NAME] [--batches N] [--repeats N]
//
// For each workload, every depth of {1, 2, 4, 8, 16} is run once with every number of workers; then
// the three best and the tuned loader, which starts again each time, are run alternately. Prints
// the time of the tuned run relative to each of them (median, minimum and maximum), the share of
// its time that the consumer waited, and the average memory of batches and reads.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/slow_reader.h"
#include "bindings/cli/synth/photograph.h"
#include "core/system/machine.h"
#include "core/time/stage_times.h"
#include "engine/loader/loader.h"
#include "engine/runtime/runtime_with_readers.h"
#include "io/folder/image_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kBatchSize = 32;

// The behavior of the consumer and of the disk.
struct Workload {
  std::string name;
  std::string meaning;
  // Returns the nanoseconds that the consumer takes after batch `index`; `made_ns`: the shortest
  // time of producing one. The consumer sleeps, like a program whose accelerator is working.
  std::function<uint64_t(uint64_t index, uint64_t made_ns)> step;
  SlowStorage storage{};
  bool huge = false;  // photographs of 24 megapixels are mixed in
};

std::vector<Workload> Workloads() {
  using namespace std::chrono_literals;
  const auto times = [](double factor) {
    return [factor](uint64_t, uint64_t made) {
      return static_cast<uint64_t>(factor * static_cast<double>(made));
    };
  };
  const auto bursts = [](uint64_t index, uint64_t made) {
    return index % 8 == 7 ? 12 * made : uint64_t{0};
  };
  SlowStorage slow;
  slow.latency = 12ms;
  slow.bytes_per_second = 60'000'000;
  return {{"faster", "the consumer takes batches as fast as they come", times(0)},
          {"equal", "a step takes as long as making a batch", times(1)},
          {"slower", "a step takes three times as long", times(3)},
          {"bursts", "eight batches at once, then a pause as long as making twelve", bursts},
          {"slow disk", "each read takes 12 ms, all together 60 MB/s; a step as long as a batch",
           times(1), slow},
          {"huge", "one in 60 has 24 megapixels; a step as long as a batch", times(1), {}, true}};
}

// A folder of links that includes large photographs. Deleted by the destructor.
class MixedFolder {
 public:
  explicit MixedFolder(const std::string& photos)
      : path_(fs::temp_directory_path() / ("tuner_bench." + std::to_string(getpid()))) {
    fs::create_directories(path_ / "class0");
    PhotographRecipe large = DrawPhotograph(1, 1);
    large.width = 6000;
    large.height = 4000;
    large.chroma = Chroma::k420;
    large.progressive = false;
    const std::vector<uint8_t> bytes = RenderPhotograph(large, 1, 1);
    int count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(photos)) {
      if (!entry.is_regular_file()) continue;
      const std::string name = std::to_string(count) + ".jpg";
      fs::create_symlink(fs::absolute(entry.path()), path_ / "class0" / name);
      if (count++ % 60 != 0) continue;
      std::ofstream(path_ / "class0" / ("large" + name), std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
  }
  ~MixedFolder() { fs::remove_all(path_); }
  MixedFolder(const MixedFolder&) = delete;
  MixedFolder& operator=(const MixedFolder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  const fs::path path_;
};

struct Setting {
  int depth = 0;  // 0: tuned, and so are workers and reads
  int workers = 0;
};

struct Outcome {
  Setting setting;
  double seconds = 0;
  double waited = 0;  // share
  double mib = 0;     // of batches in production, on average
  LoaderStats stats;
};

class Bench {
 public:
  Bench(const Workload& workload, std::shared_ptr<const SampleSource> source, uint64_t batches)
      : workload_(workload), source_(std::move(source)), batches_(batches) {}

  void Calibrate(int workers) {
    made_ns_ = 0;
    const Outcome fastest = Run({16, workers});
    made_ns_ = static_cast<uint64_t>(fastest.seconds * 1e9 / static_cast<double>(batches_));
  }

  Outcome Run(Setting setting) const {
    RuntimeOptions machine{.threads = setting.workers, .memory_budget = uint64_t{2} << 30};
    if (setting.depth != 0) machine.reads_in_flight = 64;
    ReadService::ReaderFactory make_reader;  // null: stoker's own
    if (workload_.storage.latency.count() != 0) {
      make_reader = [disk = std::make_shared<SlowDisk>(workload_.storage)] {
        return SlowReader::Make(MakePreadReader(64), disk);
      };
    }
    LoaderOptions options;
    options.source = source_;
    options.transforms = {RandomResizedCrop{.height = 224, .width = 224}, RandomHorizontalFlip{}};
    options.batch_size = kBatchSize;
    options.shuffle = true;
    options.drop_remainder = true;
    options.depth = setting.depth;
    options.runtime = RuntimeWithReaders(machine, make_reader).value();
    const auto loader = Loader::Open(std::move(options)).value();
    return Consume(*loader, setting);
  }

 private:
  Outcome Consume(Loader& loader, Setting setting) const {
    Outcome outcome;
    outcome.setting = setting;
    const uint64_t begun = NowNanoseconds();
    std::unique_ptr<Iterator> iterator = loader.Iterate();
    for (uint64_t taken = 0; taken < batches_;) {
      Batch batch = iterator->Next().value();
      if (!batch) {
        iterator = loader.Iterate();  // the next epoch
        continue;
      }
      const uint64_t step = workload_.step(taken, made_ns_);
      if (step != 0) std::this_thread::sleep_for(std::chrono::nanoseconds(step));
      const LoaderStats now = loader.Stats();
      outcome.mib += static_cast<double>(static_cast<uint64_t>(now.depth) * now.slot_bytes) /
                     static_cast<double>(batches_ << 20);
      ++taken;
    }
    outcome.seconds = static_cast<double>(NowNanoseconds() - begun) / 1e9;
    outcome.stats = loader.Stats();
    outcome.waited = static_cast<double>(outcome.stats.wait_ns) / 1e9 / outcome.seconds;
    return outcome;
  }

  const Workload& workload_;
  const std::shared_ptr<const SampleSource> source_;
  const uint64_t batches_;
  uint64_t made_ns_ = 0;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string NameOf(const Setting& setting) {
  if (setting.depth == 0) return "tuned";
  return "depth " + std::to_string(setting.depth) + ", " + std::to_string(setting.workers) +
         (setting.workers == 1 ? " worker" : " workers");
}

void Print(const Outcome& outcome) {
  std::printf("  %-20s %7.2f s   waited %5.1f %%   batches %6.1f MiB\n",
              NameOf(outcome.setting).c_str(), outcome.seconds, 100 * outcome.waited, outcome.mib);
}

void Compare(const Bench& bench, std::vector<Outcome> grid, int repeats) {
  std::ranges::sort(grid, {}, &Outcome::seconds);
  grid.resize(std::min<size_t>(grid.size(), 3));
  std::vector<std::vector<double>> ratios(grid.size());
  std::vector<Outcome> tuned;
  for (int round = 0; round < repeats; ++round) {
    tuned.push_back(bench.Run({}));
    for (size_t i = 0; i < grid.size(); ++i) {
      ratios[i].push_back(bench.Run(grid[i].setting).seconds / tuned.back().seconds);
    }
  }
  Print(tuned.back());
  const LoaderStats& last = tuned.back().stats;
  std::printf("  settings at its end: depth %d, workers %d, reads %d; %llu decisions\n", last.depth,
              last.workers, last.reads, static_cast<unsigned long long>(last.decisions_made));
  for (size_t i = 0; i < grid.size(); ++i) {
    const auto [least, most] = std::ranges::minmax(ratios[i]);
    std::printf("  throughput against %-20s %.3f (%.3f to %.3f)\n", NameOf(grid[i].setting).c_str(),
                Median(ratios[i]), least, most);
  }
}

void RunWorkload(const Workload& workload, std::shared_ptr<const SampleSource> source,
                 uint64_t batches, int repeats) {
  std::printf("\n%s: %s\n", workload.name.c_str(), workload.meaning.c_str());
  Bench bench(workload, std::move(source), batches);
  const int cores = AllottedCores();
  bench.Calibrate(cores);
  std::vector<Outcome> grid;
  for (int workers = 1; workers <= cores; workers *= 2) {
    for (int depth : {1, 2, 4, 8, 16}) {
      grid.push_back(bench.Run({depth, workers}));
      Print(grid.back());
    }
  }
  Compare(bench, std::move(grid), repeats);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  CLI::App app("Tuned against every other setting, on real photographs.");
  std::string photos, only;
  uint64_t batches = 200;
  int repeats = 5;
  app.add_option("PHOTOS", photos, "a folder with class folders of JPEGs")->required();
  app.add_option("--workload", only, "this one only");
  app.add_option("--batches", batches, "of a run");
  app.add_option("--repeats", repeats, "of the tuned run and the three best");
  CLI11_PARSE(app, argc, argv);
  const auto plain = stoker::ImageFolder(photos).value();
  const stoker::MixedFolder mixed(photos);
  const auto huge = stoker::ImageFolder(mixed.path()).value();
  for (const stoker::Workload& workload : stoker::Workloads()) {
    if (!only.empty() && workload.name != only) continue;
    stoker::RunWorkload(workload, workload.huge ? huge : plain, batches, repeats);
  }
  return 0;
}
