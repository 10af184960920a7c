// Runs random loaders over photographs from one pixel to a hundred megapixels, with budgets from
// the smallest that opens upwards. In all cases the counted memory never exceeds the budget, every
// batch is delivered or refused with a sufficient budget, and nothing hangs. In addition all memory
// of the process is counted where it is allocated, and memory outside the budget's account is
// printed.
//
//     budget_torture --folder DIR [--sets N] [--first N] [--seed N] [--megapixels N] [--cgroup DIR]
//
// --cgroup DIR: each set runs in a process of its own, in a memory cgroup made below DIR (version
// 1), whose limit is the budget, the slots next to it, and --fixed MiB.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/batch/device_crop.h"
#include "core/batch/slot_pool.h"
#include "engine/memory/memory_manager.h"
#include "engine/production/producer.h"
#include "engine/production/producer_options.h"
#include "tests/testing/samples/batches.h"
#include "tests/torture/counted_memory.h"
#include "tests/torture/option_sets.h"
#include "tests/torture/photographs.h"

namespace stoker::testing {
namespace {

struct Arguments {
  std::string folder;
  std::string cgroup;
  uint64_t sets = 1000, first = 0, seed = 1;
  double megapixels = 100;
  uint64_t fixed_mib = 32;  // memory that a process takes besides: docs/memory.md, "The budget"
};

// The result of a set.
struct Outcome {
  uint64_t budget = 0, minimum = 0, peak = 0;
  uint64_t batches = 0, refused = 0, waited = 0;
  int64_t beside = 0;  // the most held outside the budget's account, when that is at its most
  uint64_t slot_bytes = 0;
  std::vector<uint64_t> delivered;  // fingerprints; 0 means refused
  std::vector<uint64_t> named;      // by refusals
  std::string said;                 // by the last refusal
};

std::atomic<uint64_t> progress{0};
uint64_t current_set = 0;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "set %llu: %s\n", static_cast<unsigned long long>(current_set),
               what.c_str());
  std::_Exit(1);
}

// A minute without a batch is a hang.
void WatchForHangs() {
  std::thread([] {
    uint64_t seen = 0;
    for (int quiet = 0; quiet < 120; ++quiet) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      if (seen != progress.load()) quiet = 0;
      seen = progress.load();
    }
    Fail("no batch for two minutes");
  }).detach();
}

uint64_t NamedIn(const Error& error) {
  if (error.code != Code::kResourceExhausted || error.changes.empty() ||
      error.changes[0].how != OptionChange::How::kSetToAtLeast) {
    Fail(error.ToString());
  }
  return error.changes[0].least;
}

using Loaders = std::vector<std::unique_ptr<Producer>>;

// There is no device: nobody decodes the crops.
Result<std::unique_ptr<Producer>> OpenForDevice(const LoaderOptions& options) {
  constexpr uint64_t kRowBytes = 16 << 10;
  ProducerOptions own = ProducerOptionsOf(options).value();
  own.one_slab = own.defer_to_device = true;
  own.crops.bytes = options.batch_size * kRowBytes;
  own.crops.samples = 4 * own.crops.bytes / decode::kGroupSamples;
  return Producer::Open(options, std::move(own));
}

Result<Loaders> Open(const OptionSet& set, RuntimeOptions runtime, uint64_t budget) {
  runtime.memory_budget = budget;
  LoaderOptions options = set.loader;
  options.runtime = Runtime::Create(runtime).value();
  Loaders loaders;
  for (int i = 0; i <= (set.second ? 1 : 0); ++i) {
    Result<std::unique_ptr<Producer>> loader =
        set.for_device ? OpenForDevice(options) : Producer::Open(options);
    if (!loader.ok()) return std::move(loader).error();
    loaders.push_back(*std::move(loader));
  }
  return loaders;
}

// With less Open names it, and with it Open succeeds.
uint64_t MinimumOf(const OptionSet& set) {
  Result<Loaders> none = Open(set, set.runtime, 1);
  uint64_t minimum = 1;
  for (int i = 0; !none.ok() && i < 3; ++i) {  // of the first loader, and then of both
    minimum = NamedIn(none.error());
    none = Open(set, set.runtime, minimum);
  }
  if (!none.ok()) Fail("does not open with what was named: " + none.error().ToString());
  // (Of two, one may need less than what is enough for it whatever the other does.)
  if (!set.second && Open(set, set.runtime, minimum - 1).ok()) Fail("less than was named would do");
  return minimum;
}

// Rows that a device decodes are not written.
void TakeFrom(Producer& loader, bool for_device, Outcome& outcome) {
  Result<Batch> batch = loader.Next();
  ++progress;
  ++outcome.batches;
  outcome.delivered.push_back(!batch.ok() ? 0 : for_device ? 1 : Fingerprint(*batch));
  if (batch.ok()) return;
  ++outcome.refused;
  outcome.named.push_back(NamedIn(batch.error()));
  outcome.said = batch.error().ToString();
  if (batch.error().file.empty()) Fail("no file named: " + batch.error().ToString());
}

Outcome Run(const OptionSet& set, const RuntimeOptions& runtime, uint64_t budget) {
  Outcome outcome;
  outcome.budget = budget;
  const int64_t before = HeldBytes();
  ResetPeak();
  Result<Loaders> opened = Open(set, runtime, budget);
  if (!opened.ok()) Fail(opened.error().ToString());
  Loaders loaders = *std::move(opened);
  const std::shared_ptr<Runtime> shared = loaders[0]->options().runtime;
  outcome.slot_bytes = loaders[0]->Stats().slot_bytes;
  for (uint64_t i = 0; i < loaders[0]->batches_per_epoch(); ++i) {
    for (const std::unique_ptr<Producer>& loader : loaders) {
      TakeFrom(*loader, set.for_device, outcome);
    }
  }
  outcome.waited = shared->memory().samples_waited();
  outcome.peak = shared->budget().peak();
  outcome.beside = PeakBytes() - before - static_cast<int64_t>(outcome.peak);
  loaders.clear();
  if (outcome.peak > budget) Fail("more than the budget");
  if (shared->budget().used() != 0) Fail("not all given back");
  return outcome;
}

// With the budgets that refusals named nothing is refused any more. Only the first bad sample of a
// batch is reported, and for a file that cannot even be read, or a lossless WebP, no more than the
// least is known.
void FollowAdvice(const OptionSet& set, Outcome outcome) {
  constexpr uint64_t kMax = uint64_t{3} << 30;
  for (int step = 0; outcome.refused > 0; ++step) {
    const uint64_t named = *std::ranges::max_element(outcome.named);
    if (named > kMax) return;
    if (step == 100 || named <= outcome.budget) Fail("named too little: " + outcome.said);
    outcome = Run(set, set.runtime, named);
  }
}

Outcome RunSet(const OptionSet& set, uint64_t number) {
  const uint64_t minimum = MinimumOf(set);
  const auto budget = static_cast<uint64_t>(static_cast<double>(minimum) * set.budget);
  Outcome outcome = Run(set, set.runtime, budget);
  outcome.minimum = minimum;
  if (set.all_ordinary && outcome.refused > 0) {
    Fail("an ordinary photograph was refused: " + outcome.said);
  }
  if (set.second) return outcome;
  if (number % 4 == 0) {
    const Outcome other = Run(set, OtherMeans(set.runtime, number), budget);
    if (other.delivered != outcome.delivered) {
      Fail("other batches, or refusals, by other means: " + outcome.said + " " + other.said);
    }
  }
  if (number % 8 == 1) FollowAdvice(set, outcome);
  return outcome;
}

class Table {
 public:
  void Add(const OptionSet& set, const Outcome& outcome) {
    Row& row = rows_[set.budget == 1 ? 0 : set.budget < 1.6 ? 1 : set.budget < 7 ? 2 : 3];
    ++row.sets;
    row.huge += set.huge ? 1 : 0;
    row.batches += outcome.batches;
    row.refused += outcome.refused;
    row.waited += outcome.waited;
    row.fullest = std::max(row.fullest,
                           static_cast<double>(outcome.peak) / static_cast<double>(outcome.budget));
    const int64_t slots = static_cast<int64_t>(outcome.slot_bytes) * (1 + SlotPool::kSpareSlots);
    row.beside.push_back(outcome.beside - (set.second ? 2 : 1) * slots);
  }

  void Print() {
    const char* names[] = {"the smallest", "up to 1.6 x", "2 to 7 x", "20 to 130 x"};
    std::printf(
        "| budget | sets | with 50 MP or more | batches | refused | samples that waited | fullest "
        "| beside it, median | "
        "most |\n");
    std::printf("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < rows_.size(); ++i) {
      Row& row = rows_[i];
      if (row.sets == 0) continue;
      std::ranges::sort(row.beside);
      std::printf("| %s | %llu | %llu | %llu | %llu | %llu | %.2f | %.1f MiB | %.1f MiB |\n",
                  names[i], row.sets, row.huge, row.batches, row.refused, row.waited, row.fullest,
                  static_cast<double>(row.beside[row.beside.size() / 2]) / (1 << 20),
                  static_cast<double>(row.beside.back()) / (1 << 20));
    }
  }

 private:
  struct Row {
    unsigned long long sets = 0, huge = 0, batches = 0, refused = 0,
                       waited = 0;  // NOLINT: printf's
    double fullest = 0;
    std::vector<int64_t> beside;
  };
  std::vector<Row> rows_ = std::vector<Row>(4);
};

// ---- In a cgroup

void Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (!(file << text << std::flush)) Fail("cannot write " + path);
}

uint64_t ReadNumber(const std::string& path) {
  uint64_t value = 0;
  std::ifstream(path) >> value;
  return value;
}

// Returns the most that the group held, including its page cache; fails if its process was killed.
uint64_t RunInGroup(const Arguments& given, uint64_t number, uint64_t limit, char* program) {
  const std::string group = given.cgroup + "/stoker_torture_" + std::to_string(getpid());
  std::filesystem::create_directory(group);
  Write(group + "/memory.limit_in_bytes", std::to_string(limit));
  const std::string first = std::to_string(number), seed = std::to_string(given.seed),
                    megapixels = std::to_string(given.megapixels);
  const pid_t child = fork();
  if (child == 0) {
    Write(group + "/cgroup.procs", std::to_string(getpid()));
    execl(program, program, "--folder", given.folder.c_str(), "--first", first.c_str(), "--sets",
          "1", "--seed", seed.c_str(), "--megapixels", megapixels.c_str(), "--once", nullptr);
    std::_Exit(2);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  const uint64_t most = ReadNumber(group + "/memory.max_usage_in_bytes");
  rmdir(group.c_str());
  if (WIFSIGNALED(status)) Fail("killed by signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) Fail("failed in its group");
  return most;
}

int RunAllInGroups(const Arguments& given, const std::vector<Photograph>& photographs,
                   char* program) {
  double fullest = 0;
  for (uint64_t number = given.first; number < given.first + given.sets; ++number) {
    current_set = number;
    ++progress;
    const OptionSet set = DrawSet(given.seed, number, photographs);
    const uint64_t minimum = MinimumOf(set);
    const auto budget = static_cast<uint64_t>(static_cast<double>(minimum) * set.budget);
    const uint64_t slots = Open(set, set.runtime, minimum).value()[0]->Stats().slot_bytes *
                           (1 + SlotPool::kSpareSlots) * (set.second ? 2 : 1);
    const uint64_t limit = budget + slots + (given.fixed_mib << 20);
    const uint64_t most = RunInGroup(given, number, limit, program);
    fullest = std::max(fullest, static_cast<double>(most) / static_cast<double>(limit));
  }
  std::printf("%llu sets in groups of their own, none was killed; fullest %.2f\n",
              static_cast<unsigned long long>(given.sets), fullest);
  return 0;
}

int Main(int argc, char** argv) {
  Arguments given;
  bool once = false;
  CLI::App app("Loaders at the edge of their memory budget");
  app.add_option("--folder", given.folder, "where the photographs are made")->required();
  app.add_option("--sets", given.sets, "how many option sets");
  app.add_option("--first", given.first, "the first one's number");
  app.add_option("--seed", given.seed, "of all draws");
  app.add_option("--megapixels", given.megapixels, "of the largest photograph");
  app.add_option("--cgroup", given.cgroup, "a folder of memory cgroups, version 1");
  app.add_option("--fixed", given.fixed_mib, "MiB of a cgroup's limit beside the budget");
  app.add_flag("--once", once, "no second run of any set");
  CLI11_PARSE(app, argc, argv);

  const std::vector<Photograph> photographs = MakePhotographs(given.folder, given.megapixels);
  WatchForHangs();
  if (!given.cgroup.empty()) return RunAllInGroups(given, photographs, argv[0]);
  Table table;
  for (uint64_t number = given.first; number < given.first + given.sets; ++number) {
    current_set = number;
    const OptionSet set = DrawSet(given.seed, number, photographs);
    if (once) {
      const auto minimum = static_cast<double>(MinimumOf(set));
      (void)Run(set, set.runtime, static_cast<uint64_t>(minimum * set.budget));
    } else {
      table.Add(set, RunSet(set, number));
    }
  }
  if (!once) table.Print();
  return 0;
}

}  // namespace
}  // namespace stoker::testing

int main(int argc, char** argv) { return stoker::testing::Main(argc, argv); }
