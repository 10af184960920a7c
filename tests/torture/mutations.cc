// Mutations of photographs (mutate.h), each through the decoders and through a loader.
//
//     mutations [PHOTOS] [--count 10000] [--seed N] [--first N] [--write FILE]
//
// PHOTOS: a folder of class folders with JPEGs; by default 40 small ones that it makes. Prints what
// became of the mutations by kind, the slowest sample, and the largest memory. Ends with 1, or
// aborts, at the first that is not as it should be, and names its number: --first N --count 1 tries
// it alone, with --write it is written to FILE and nothing is tried. A sample may take 20 seconds
// of CPU time; where nothing moves for five minutes, it ends with 2.
//
// Decoders: a region by stoker's and by the reference decoders, as fuzzers do (tests/fuzz). Loader:
// epochs of mutations among whole photographs, with a memory budget, under each policy for bad
// samples. Each batch must have the samples that a model expects (soak_model.h), one of its rows is
// compared with the model's to the byte; each sample is delivered, has another in its place, is
// dropped, or its batch fails.
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "engine/production/producer_parts.h"
#include "engine/runtime/runtime_with_readers.h"
#include "tests/fuzz/decode/decode_formats.h"
#include "tests/fuzz/decode/decode_jpeg.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/fake_reader.h"
#include "tests/testing/threads/executors.h"
#include "tests/torture/counted_memory.h"
#include "tests/torture/hang_watch.h"
#include "tests/torture/mutate.h"
#include "tests/torture/photographs.h"
#include "tests/torture/soak_model.h"

namespace stoker::testing {
namespace {

using Photos = std::vector<std::filesystem::path>;

constexpr uint64_t kTogether = 64, kWhole = 16;  // mutations and whole photographs of an epoch
constexpr uint64_t kBudget = uint64_t{64} << 20;
constexpr DecodeLimits kLimits{.max_pixels = int64_t{1} << 24};
// Memory that a process takes outside its budget (docs/memory.md, "The budget").
constexpr uint64_t kBeside = uint64_t{32} << 20;
// CPU time of a sample. A wait is a hang after minutes only, because the machine may be busy.
constexpr double kLongestMs = 20e3;
constexpr std::chrono::minutes kHangs{5};

struct Arguments {
  std::string photos, write;
  uint64_t count = 10000, seed = 1, first = 0;
};

// What became of the mutations of one kind.
struct Row {
  uint64_t made = 0, decoded = 0;
  FaultCounts refused{};
  double slowest_ms = 0;  // of CPU time
  uint64_t slowest = 0;   // its number
  uint64_t memory = 0;    // the most that a sample reserved
};

// What became of the samples of all epochs.
struct Epochs {
  uint64_t epochs = 0, delivered = 0, substituted = 0, dropped = 0, failed = 0, over_budget = 0;
  uint64_t memory = 0;  // the most in use, of the budget
  int64_t beside = 0;   // the most held, beside what was counted
};

volatile std::sig_atomic_t current = 0;  // the mutation that is tried

// After a broken promise, or a sanitizer's report with abort_on_error=1. Async-signal-safe.
void NameCurrent(int /*signal*/) {
  std::array<char, 64> text{};
  size_t at = text.size();
  text[--at] = '\n';
  auto number = static_cast<unsigned>(current);
  do {
    text[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  constexpr char kWhat[] = "mutation ";
  (void)!write(STDERR_FILENO, kWhat, sizeof kWhat - 1);
  (void)!write(STDERR_FILENO, text.data() + at, text.size() - at);
}

[[noreturn]] void Fail(const std::string& what) {
  std::printf("%s\n", what.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

double ThreadMilliseconds() {
  timespec now{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::string PathOf(uint64_t id) { return "photograph" + std::to_string(id); }

// Options of all epochs of a group; `number` chooses the policy, and whether truncated files are
// accepted. The whole image is resized, so that a sample is bad wherever it comes.
LoaderOptions OptionsOf(uint64_t number, uint64_t samples) {
  constexpr const char* kPolicies[] = {"substitute", "drop", "fail"};
  std::vector<Photograph> files;
  for (uint64_t id = 0; id < samples; ++id) files.push_back({.path = PathOf(id)});
  LoaderOptions options;
  options.source = SourceOf(std::move(files));
  options.transforms = {Resize{.height = 64, .width = 64}, RandomHorizontalFlip{}};
  options.limits = kLimits;
  options.limits.accept_truncated = number / 3 % 2 == 1;
  options.batch_size = 4;
  options.shuffle = true;
  options.seed = number;
  options.depth = 2;
  options.epochs = 1;
  options.on_bad = BadPolicy::Parse(kPolicies[number % 3]).value();
  options.max_bad_fraction = 1;
  options.lent_batches = 0;
  return options;
}

// Mutations that share an epoch, and whole photographs among them.
class Group {
 public:
  Group(const Photos& photos, uint64_t seed, uint64_t first, uint64_t count, HangWatch& watch)
      : first_(first), watch_(watch), disk_(std::make_shared<FakeDisk>()) {
    for (uint64_t id = 0; id < count; ++id) {
      watch_.Begin(first + id);
      mutations_.push_back(Mutate(photos, seed, first + id));
      disk_->files[PathOf(id)] = mutations_.back().bytes;
    }
    for (uint64_t id = count; id < count + kWhole; ++id) {
      disk_->files[PathOf(id)] = ReadFile(photos[(first + id) % photos.size()]);
    }
    options_ = OptionsOf(first / kTogether, count + kWhole);
  }

  void TryDecoders(std::vector<Row>& rows) {
    const Plan plan = PlanOf(options_, {}).value().value();
    for (uint64_t id = 0; id < mutations_.size(); ++id) {
      current = static_cast<std::sig_atomic_t>(first_ + id);
      watch_.Begin(first_ + id);
      const Mutation& mutation = mutations_[id];
      if (mutation.form == PhotoForm::kPng) {
        DecodeFuzzedPng(mutation.bytes);
      } else if (mutation.form >= PhotoForm::kWebp) {
        DecodeFuzzedWebp(mutation.bytes);
      } else {
        DecodeFuzzedJpeg(mutation.bytes);
      }
      watch_.Begin(first_ + id);
      TryPlan(plan, id, rows[static_cast<size_t>(mutation.kind)]);
    }
  }

  // To be called after TryDecoders, which finds out which samples are bad.
  void TryLoader(Epochs& all) {
    Epochs epoch{.epochs = 1};
    const std::vector<Result<Batch>> batches = TakeEpoch(epoch);
    Compare(batches, epoch);
    if (epoch.delivered + epoch.substituted + epoch.dropped + epoch.failed + epoch.over_budget !=
        options_.source->size()) {
      Fail(Name() + ": samples are missing");
    }
    if (epoch.failed + epoch.over_budget == 0 &&
        (bad_.substituted != epoch.substituted || bad_.dropped != epoch.dropped)) {
      Fail(Name() + ": the loader counts other samples");
    }
    Add(epoch, all);
  }

 private:
  std::string Name() const {
    return "mutations " + std::to_string(first_) + " to " +
           std::to_string(first_ + mutations_.size() - 1);
  }

  // The sample alone, with as much memory as it wants.
  void TryPlan(const Plan& plan, uint64_t id, Row& row) {
    MemoryBudget budget(uint64_t{1} << 40);
    std::vector<uint8_t> bytes = mutations_[id].bytes, out(plan.row_bytes());
    const size_t size = bytes.size();
    bytes.resize(size + kBufferPadding);
    StageTimes times;
    const int64_t held = HeldBytes();
    ResetPeak();
    const double begun = ThreadMilliseconds();
    const Status status = [&] {
      const auto workspace = plan.MakeWorkspace(budget);
      return plan.Apply(std::span(bytes).first(size), {options_.seed, 0, id}, *workspace,
                        out.data(), times);
    }();
    const double took = ThreadMilliseconds() - begun;
    ++row.made;
    if (took > kLongestMs) Fail("mutation " + std::to_string(first_ + id) + ": it takes too long");
    if (took > row.slowest_ms) {
      row.slowest_ms = took;
      row.slowest = first_ + id;
    }
    row.memory = std::max(row.memory, budget.peak());
    if (PeakBytes() - held > static_cast<int64_t>(budget.peak() + kBeside)) {
      Fail("mutation " + std::to_string(first_ + id) + ": much memory is not counted");
    }
    if (status.ok()) {
      ++row.decoded;
      return;
    }
    const std::optional<SampleFault> fault = FaultOf(status.error());
    if (!fault) Fail("mutation " + std::to_string(first_ + id) + ": " + status.error().ToString());
    ++row.refused[static_cast<size_t>(*fault)];
    faults_[id] = *fault;
  }

  // All that the loader returns before the end of the epoch. Memory is what is counted, and little
  // else, and all of it is given back.
  std::vector<Result<Batch>> TakeEpoch(Epochs& epoch) {
    RuntimeOptions given = RuntimeUnderTest(2);
    given.memory_budget = kBudget;
    const std::shared_ptr<Runtime> runtime =
        RuntimeWithReaders(given, [disk = disk_, seed = first_] {
          return Result<std::unique_ptr<Reader>>(std::make_unique<FakeReader>(disk, 8, seed));
        }).value();
    LoaderOptions options = options_;
    options.runtime = runtime;
    std::vector<Result<Batch>> batches;
    const int64_t before = HeldBytes();
    ResetPeak();
    {
      const auto loader = Loader::Open(std::move(options)).value();
      const auto iterator = loader->Iterate();
      while (batches.size() <= loader->batches_per_epoch()) {
        watch_.Begin(first_);
        Result<Batch> batch = iterator->Next();
        if (batch.ok() && !*batch) break;
        batches.push_back(std::move(batch));
      }
      bad_ = loader->Stats().bad;
    }
    const MemoryBudget& budget = runtime->budget();
    if (budget.peak() > kBudget) Fail(Name() + ": more than the budget");
    if (budget.used() != 0) Fail(Name() + ": memory is not given back");
    epoch.memory = budget.peak();
    epoch.beside = PeakBytes() - before - static_cast<int64_t>(epoch.memory);
    if (epoch.beside > static_cast<int64_t>(kBeside)) Fail(Name() + ": much memory is not counted");
    return batches;
  }

  void Compare(const std::vector<Result<Batch>>& batches, Epochs& epoch) {
    SoakModel model(options_, *disk_, faults_);
    auto batch = batches.begin();
    for (BatchName at{}; at.index < model.batches_per_epoch(); ++at.index) {
      watch_.Begin(first_);
      const ExpectedBatch expected = model.At(at);
      const uint64_t samples = std::min<uint64_t>(
          options_.batch_size, options_.source->size() - at.index * options_.batch_size);
      if (!expected.fails && expected.rows.empty()) {
        epoch.dropped += samples;
        continue;
      }
      if (batch == batches.end()) Fail(Name() + ": batches are missing");
      const Result<Batch>& got = *batch++;
      if (!got.ok()) {
        Count(got.error(), expected, samples, epoch);
        continue;
      }
      if (expected.fails) Fail(Name() + ": a batch came that should fail");
      if (got->name() != at) Fail(Name() + ": another batch came");
      const std::string different = model.Differs(*got, expected, /*checked=*/1);
      if (!different.empty()) Fail(Name() + ": " + different);
      epoch.delivered += expected.rows.size() - expected.substituted;
      epoch.substituted += expected.substituted;
      epoch.dropped += expected.dropped;
    }
    if (batch != batches.end()) Fail(Name() + ": there are further batches");
  }

  // A sample may need more than the budget, which no policy handles.
  void Count(const Error& error, const ExpectedBatch& expected, uint64_t samples, Epochs& epoch) {
    if (error.code == Code::kResourceExhausted && !FaultOf(error)) {
      const bool advises =
          !error.changes.empty() && error.changes[0].how == OptionChange::How::kSetToAtLeast;
      if (!advises || !IsMutation(error.file)) {
        Fail(Name() + ": " + error.ToString());
      }
      epoch.over_budget += samples;
      return;
    }
    if (!expected.fails || !FaultOf(error)) Fail(Name() + ": " + error.ToString());
    epoch.failed += samples;
  }

  bool IsMutation(const std::string& path) const {
    for (uint64_t id = 0; id < mutations_.size(); ++id) {
      if (path == PathOf(id)) return true;
    }
    return false;
  }

  static void Add(const Epochs& epoch, Epochs& all) {
    all.epochs += epoch.epochs;
    all.delivered += epoch.delivered;
    all.substituted += epoch.substituted;
    all.dropped += epoch.dropped;
    all.failed += epoch.failed;
    all.over_budget += epoch.over_budget;
    all.memory = std::max(all.memory, epoch.memory);
    all.beside = std::max(all.beside, epoch.beside);
  }

  const uint64_t first_;
  HangWatch& watch_;
  std::vector<Mutation> mutations_;
  const std::shared_ptr<FakeDisk> disk_;
  Faults faults_;
  LoaderOptions options_;
  BadCounts bad_;  // as the loader counts
};

double Mib(double bytes) { return bytes / (1 << 20); }

void PrintRow(const char* name, const Row& row) {
  std::printf("| %s | %llu | %llu |", name, static_cast<unsigned long long>(row.made),
              static_cast<unsigned long long>(row.decoded));
  for (const SampleFault fault : {SampleFault::kTruncated, SampleFault::kUndecodable,
                                  SampleFault::kOverLimits, SampleFault::kUnsupported}) {
    std::printf(" %llu |",
                static_cast<unsigned long long>(row.refused[static_cast<size_t>(fault)]));
  }
  std::printf(" %.0f ms (%llu) | %.1f MiB |\n", row.slowest_ms,
              static_cast<unsigned long long>(row.slowest), Mib(static_cast<double>(row.memory)));
}

void Print(const std::vector<Row>& rows, const Epochs& all) {
  std::printf(
      "| mutation | made | decoded | truncated | undecodable | over limits | unsupported | "
      "slowest, "
      "CPU time (its number) | largest memory |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  Row sum;
  for (int kind = 0; kind < kMutationKinds; ++kind) {
    const Row& row = rows[static_cast<size_t>(kind)];
    PrintRow(NameOf(static_cast<MutationKind>(kind)), row);
    sum.made += row.made;
    sum.decoded += row.decoded;
    for (size_t fault = 0; fault < sum.refused.size(); ++fault) {
      sum.refused[fault] += row.refused[fault];
    }
    sum.memory = std::max(sum.memory, row.memory);
    if (row.slowest_ms < sum.slowest_ms) continue;
    sum.slowest_ms = row.slowest_ms;
    sum.slowest = row.slowest;
  }
  PrintRow("all", sum);
  std::printf(
      "%llu epochs of loaders: %llu samples delivered, %llu substituted, %llu dropped, %llu in "
      "batches that failed, %llu in batches that the budget refused\n",
      static_cast<unsigned long long>(all.epochs), static_cast<unsigned long long>(all.delivered),
      static_cast<unsigned long long>(all.substituted),
      static_cast<unsigned long long>(all.dropped), static_cast<unsigned long long>(all.failed),
      static_cast<unsigned long long>(all.over_budget));
  std::printf("memory: at most %.1f of %.0f MiB, and %.1f MiB beside it\n",
              Mib(static_cast<double>(all.memory)), Mib(kBudget),
              Mib(static_cast<double>(all.beside)));
}

int Run(const Arguments& given) {
  std::optional<PhotoFolder> made;
  if (given.photos.empty()) made.emplace(40, 2);
  const Photos photos = PhotosIn(made ? made->path() : given.photos);
  if (!given.write.empty()) {
    const Mutation mutation = Mutate(photos, given.seed, given.first);
    std::ofstream(given.write, std::ios::binary)
        .write(reinterpret_cast<const char*>(mutation.bytes.data()),
               static_cast<std::streamsize>(mutation.bytes.size()));
    return 0;
  }
  (void)std::signal(SIGABRT, NameCurrent);
  std::vector<Row> rows(kMutationKinds);
  Epochs all;
  size_t groups = 0;
  HangWatch watch(given.seed, "mutation", kHangs);
  const uint64_t end = given.first + given.count;
  for (uint64_t first = given.first; first < end; first += kTogether) {
    Group group(photos, given.seed, first, std::min(kTogether, end - first), watch);
    group.TryDecoders(rows);
    group.TryLoader(all);
    if (++groups % 16 == 0) std::fprintf(stderr, "%zu mutations\n", groups * kTogether);
  }
  Print(rows, all);
  return 0;
}

}  // namespace
}  // namespace stoker::testing

int main(int argc, char** argv) {
  stoker::testing::Arguments given;
  CLI::App app("Mutations of photographs, through the decoders and through a loader.");
  app.add_option("PHOTOS", given.photos, "a folder of class folders with JPEGs");
  app.add_option("--count", given.count, "how many mutations");
  app.add_option("--seed", given.seed, "of all draws");
  app.add_option("--first", given.first, "the first one's number");
  app.add_option("--write", given.write, "write the first one to this file, and try none");
  CLI11_PARSE(app, argc, argv);
  return stoker::testing::Run(given);
}
