#include "bindings/cli/bench/reads/ceilings.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/cli/bench/device_consumer.h"
#include "bindings/cli/bench/reads/page_cache.h"
#include "bindings/cli/bench/reads/read_runner.h"
#include "bindings/cli/explain/plan_cost.h"
#include "core/memory/mapping.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/system/start_thread.h"
#include "core/time/core_time.h"
#include "engine/production/producer_parts.h"

namespace stoker {

namespace {

constexpr uint64_t kPartNs = 1'000'000'000;  // the duration of measuring a part
constexpr double kRunSeconds = 3;
constexpr double kPatienceSeconds = 30;      // for the run's first batch
constexpr uint64_t kWithoutEnd = 1'000'000;  // epochs: time ends the measurement

using Gate = std::barrier<>;

// Runs `work(i, gate)` on a thread for each i below `threads`; all of them may wait at the gate
// once. Fails if the system gives fewer threads.
Status RunOnThreads(int threads, const std::function<void(int, Gate&)>& work) {
  Gate gate(threads);
  Status status;
  std::vector<std::thread> running;
  running.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    if (status.ok()) {
      Result<std::thread> started =
          StartThread("a thread that measures", [&work, &gate, i] { work(i, gate); });
      if (started.ok()) {
        running.push_back(*std::move(started));
        continue;
      }
      status = started.error();
    }
    gate.arrive_and_drop();  // the others do not wait for it
  }
  for (std::thread& thread : running) thread.join();
  return status;
}

Result<Ceiling> MeasureStorage(BenchOptions options, const KeepExplaining& keep_going,
                               std::optional<double>& cached) {
  if (options.loader.source->objects() != nullptr) {
    return Ceiling{.why_not = "the samples are remote objects"};
  }
  options.epochs = kWithoutEnd;
  ++options.loader.seed;  // not the run's order: its files are in the cache
  ASSIGN_OR_RETURN(const ReadReport read, RunReadBench(options, [&](const ReadProgress& progress) {
                     return keep_going("storage alone") && progress.seconds * 1e9 < kPartNs;
                   }));
  const auto bytes = static_cast<double>(read.bytes);
  if (read.bytes > 0 && BytesFromStorage()) {  // otherwise the report has 0 of them anyway
    cached = std::max(0.0, 1 - static_cast<double>(read.bytes_from_storage) / bytes);
  }
  return Ceiling{.images_per_second = static_cast<double>(read.samples) / read.seconds,
                 .bytes_per_second = bytes / read.seconds};
}

// CPU nanoseconds of all images.
double CpuOf(const PlanCost& cost) {
  return static_cast<double>(cost.work_ns) * cost.clocked.share();
}

Error NothingDecoded(const PlanCost& cost) {
  return {Code::kDataLoss, "no image could be decoded; the first: " + cost.first_refusal};
}

// Applies the plan to a few images, to estimate how many take kPartNs.
Result<double> Probe(const SampleSource& source, const Plan& plan, uint64_t seed,
                     const std::function<bool(uint64_t, uint64_t)>& go_on) {
  constexpr uint64_t kFew = 8;
  const PlanWork work{
      .images = kFew, .rounds = 1, .seed = seed, .until_ns = NowNanoseconds() + kPartNs};
  ASSIGN_OR_RETURN(const PlanCost cost, MeasurePlan(source, plan, work, go_on));
  if (cost.images == 0) return NothingDecoded(cost);
  return CpuOf(cost) / static_cast<double>(cost.images);
}

// Chooses how many images to decode and how many times, given the cost of one image in ns.
PlanWork WorkOf(const SampleSource& source, double image_ns, uint64_t seed) {
  constexpr uint64_t kMostFiles = 512, kMostObjects = 16, kMostRounds = 1000;
  const uint64_t most = source.objects() != nullptr ? kMostObjects : kMostFiles;
  const auto affordable = static_cast<uint64_t>(kPartNs / std::max(image_ns, 1.0));
  const uint64_t images = std::clamp<uint64_t>(affordable / 2, 1, most);
  const uint64_t distinct = std::min(images, source.size());
  const uint64_t rounds = std::clamp<uint64_t>(affordable / distinct, 2, kMostRounds) - 1;
  // Reading may take as long as decoding.
  return {.images = images,
          .rounds = static_cast<int>(rounds),
          .seed = seed,
          .until_ns = NowNanoseconds() + 2 * kPartNs};
}

// All workers decode at the same time, because they share caches, memory and perhaps cores
// (hyperthreads): a multiple of one worker's speed would be too optimistic. Other programs count as
// little as possible: the images are divided by the CPU time of their worker.
Result<Ceiling> MeasureDecoding(const SampleSource& source, const Plan& plan, uint64_t seed,
                                const KeepExplaining& keep_going, Ceilings& ceilings) {
  std::atomic<bool> interrupted{false};
  const auto still_wanted = [&](uint64_t /*done*/, uint64_t /*total*/) { return !interrupted; };
  const auto ask = [&](uint64_t /*done*/, uint64_t /*total*/) {
    if (!keep_going("decoding alone")) interrupted = true;
    return !interrupted;
  };
  ASSIGN_OR_RETURN(const double expected, Probe(source, plan, seed, ask));
  const PlanWork work = WorkOf(source, expected, seed);
  std::vector<Result<PlanCost>> costs(static_cast<size_t>(ceilings.workers), PlanCost());
  TRY(RunOnThreads(ceilings.workers, [&](int worker, Gate& /*gate*/) {
    PlanWork own = work;
    own.seed += static_cast<uint64_t>(worker);
    const auto& go_on = worker == 0 ? std::function(ask) : std::function(still_wanted);
    costs[static_cast<size_t>(worker)] = MeasurePlan(source, plan, own, go_on);
  }));
  Ceiling decode;
  double cpu_ns = 0, decoded = 0;
  for (const Result<PlanCost>& cost : costs) {
    if (!cost.ok()) return cost.error();
    if (cost->images == 0) return NothingDecoded(*cost);
    const auto images = static_cast<double>(cost->images);
    decode.images_per_second += images * 1e9 / CpuOf(*cost);
    cpu_ns += CpuOf(*cost);
    decoded += images;
  }
  ceilings.decode_seconds = cpu_ns * 1e-9 / decoded;
  decode.bytes_per_second = decode.images_per_second * static_cast<double>(ceilings.image_bytes);
  return decode;
}

// Fills the memory with rows repeatedly; returns bytes per second of CPU time.
double WriteRows(const Mapping& memory, size_t row_bytes) {
  const size_t rows = memory.size() / row_bytes;
  uint64_t written = 0;
  const CoreClock clock;
  const uint64_t begun = NowNanoseconds();
  uint64_t now = begun;
  for (; now - begun < kPartNs / 4; now = NowNanoseconds(), ++written) {
    std::memset(memory.data() + written % rows * row_bytes, static_cast<int>(written & 0xff),
                row_bytes);
  }
  const double share = clock.Read().value_or(CoreTime()).share();
  return static_cast<double>(written * row_bytes) * 1e9 /
         (static_cast<double>(now - begun) * share);
}

// Every image is written to its batch at least once, so writing alone is a bound. The workers write
// at the same time, row by row, as they do when they decode. A consumer reads batches much later,
// so the memory is larger than the caches.
Result<Ceiling> MeasureMemory(const BenchOptions& options, const Ceilings& ceilings) {
  constexpr uint64_t kBeyondCaches = uint64_t{512} << 20;
  const uint64_t budget = options.runtime.memory_budget;
  const auto workers = static_cast<size_t>(ceilings.workers);
  const size_t bytes = std::min(kBeyondCaches, budget > 0 ? budget : DefaultMemory()) / workers;
  const size_t rows = std::max<size_t>(bytes / ceilings.image_bytes, 2);
  std::vector<Result<double>> rates(workers, 0.0);
  TRY(RunOnThreads(ceilings.workers, [&](int worker, Gate& gate) {
    const Result<Mapping> memory = Mapping::Map(rows * ceilings.image_bytes, /*huge_pages=*/true);
    if (memory.ok()) std::memset(memory->data(), 0, memory->size());  // maps its pages
    gate.arrive_and_wait();
    auto& rate = rates[static_cast<size_t>(worker)];
    if (memory.ok()) {
      rate = WriteRows(*memory, ceilings.image_bytes);
    } else {
      rate = memory.error();
    }
  }));
  double sum = 0;
  for (const Result<double>& rate : rates) {
    if (!rate.ok()) return rate.error();
    sum += *rate;
  }
  return Ceiling{.images_per_second = sum / static_cast<double>(ceilings.image_bytes),
                 .bytes_per_second = sum};
}

// Copies batches to the first device, if the run did not.
Result<Ceiling> MeasureCopy(const BenchOptions& options, Ceilings& ceilings) {
  const double images = options.loader.batch_size;
  double rate = 0, bytes = 0;
  if (options.device) {
    rate = ceilings.run.device->bare_copy_rate;
    bytes = static_cast<double>(ceilings.run.device->copy_bytes);
    ceilings.device = options.device->name.ToString();
  } else {
    const CudaReport found = LookForCuda();
    if (found.devices.empty()) return Ceiling{.why_not = "no device: " + found.why_not};
    ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse("cuda:0"));
    ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, Device::Open(name));
    bytes = images * static_cast<double>(ceilings.image_bytes);
    ASSIGN_OR_RETURN(rate, BareCopyRate(*device, static_cast<size_t>(bytes)));
    ceilings.device = name.ToString();
  }
  return Ceiling{.images_per_second = rate / bytes * images, .bytes_per_second = rate};
}

Status MeasureRun(BenchOptions options, const KeepExplaining& keep_going, Ceilings& ceilings) {
  options.epochs = kWithoutEnd;
  bool late = false;
  Result<BenchReport> run = RunBench(options, [&](const BenchProgress& progress) {
    late = progress.seconds >= (progress.batches > 0 ? kRunSeconds : kPatienceSeconds);
    return keep_going("the run") && !late;
  });
  if (!run.ok() && run.error().code == Code::kCancelled && late && !ceilings.interrupted) {
    return Error{.code = Code::kUnavailable,
                 .cause = "the loader made no batch in 30 seconds",
                 .advice = "See with `stoker verify` whether its samples can be used"};
  }
  ASSIGN_OR_RETURN(ceilings.run, std::move(run));
  ceilings.run.options.epochs = ceilings.run.epochs + 1;  // epochs that began
  return {};
}

}  // namespace

Result<Ceilings> MeasureCeilings(const BenchOptions& options, const KeepExplaining& keep_going) {
  if (!options.loader.views.empty()) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "--explain does not measure recipes with several views",
                 .advice = "Put the transforms of one view into a recipe of their own"};
  }
  ASSIGN_OR_RETURN(const std::optional<Plan> plan, PlanOf(options.loader, {}));
  Ceilings ceilings;
  const int workers = options.runtime.threads > 0 ? options.runtime.threads : DefaultThreads();
  ceilings.workers = std::min(workers, AllottedCores());
  ceilings.image_bytes = plan->row_bytes();
  const KeepExplaining ask = [&](const char* what) {
    if (!ceilings.interrupted) ceilings.interrupted = !keep_going(what);
    return !ceilings.interrupted;
  };
  const auto part = [&](const char* what, const auto& measure) {
    if (!ask(what)) return Ceiling{.why_not = "interrupted"};
    Result<Ceiling> measured = measure();
    if (!ask(what)) return Ceiling{.why_not = "interrupted"};  // perhaps in the middle of it
    return measured.ok() ? *std::move(measured) : Ceiling{.why_not = measured.error().Message()};
  };
  TRY(MeasureRun(options, ask, ceilings));
  ceilings.run.interrupted = ceilings.interrupted;  // and was not interrupted by its time limit
  ceilings.storage =
      part("storage alone", [&] { return MeasureStorage(options, ask, ceilings.cached); });
  ceilings.decode = part("decoding alone", [&] {
    return MeasureDecoding(*options.loader.source, *plan, options.loader.seed, ask, ceilings);
  });
  ceilings.memory = part("memory alone", [&] { return MeasureMemory(options, ceilings); });
  ceilings.copy = part("the copy alone", [&] { return MeasureCopy(options, ceilings); });
  return ceilings;
}

std::optional<double> RunRate(const BenchReport& run) {
  constexpr uint64_t kTimesInProduction = 3;
  const uint64_t loaders = run.options.cold ? run.options.epochs : 1;
  const uint64_t few = kTimesInProduction * static_cast<uint64_t>(std::max(run.loader.depth, 1));
  if (run.batches_after_first < few * loaders || run.seconds_after_first <= 0) return std::nullopt;
  return static_cast<double>(run.images_after_first) / run.seconds_after_first;
}

}  // namespace stoker
