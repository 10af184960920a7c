#include "bindings/cli/bench/ceilings.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/cli/bench/device_consumer.h"
#include "bindings/cli/bench/read_runner.h"
#include "bindings/cli/explain/plan_cost.h"
#include "core/core_time.h"
#include "core/machine.h"
#include "core/mapping.h"
#include "core/try.h"
#include "engine/loader/producer_parts.h"

namespace stoker {

namespace {

constexpr uint64_t kPartNs = 1'000'000'000;  // how long a part is measured
constexpr double kRunSeconds = 3;
constexpr uint64_t kWithoutEnd = 1'000'000;  // epochs: time ends the measurement

Error Interrupted() { return {Code::kCancelled, "interrupted"}; }

// Runs `work(i)` on a thread for each i below `threads`, all at the same time.
template <typename Work>
void Together(int threads, const Work& work) {
  std::vector<std::jthread> running;
  running.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) running.emplace_back([&work, i] { work(i); });
}

Result<Ceiling> MeasureStorage(BenchOptions options, const KeepExplaining& keep_going,
                               std::optional<double>& cached_before) {
  const SampleSource& source = *options.loader.source;
  if (source.objects() != nullptr) return Ceiling{.why_not = "the samples are behind URLs"};
  options.epochs = kWithoutEnd;
  ++options.loader.seed;  // the run's first samples should not be those that were read last
  bool interrupted = false;
  const auto until_late = [&](const ReadProgress& progress) {
    interrupted = !keep_going("storage alone");
    return !interrupted && progress.seconds * 1e9 < kPartNs;
  };
  const Result<ReadReport> read = RunReadBench(options, until_late);
  if (interrupted) return Interrupted();
  if (!read.ok() && read.error().file.empty()) return read.error();
  // --on-bad says whether this ends the run.
  if (!read.ok()) return Ceiling{.why_not = read.error().Message()};
  cached_before = read->cached_before;
  return Ceiling{.images_per_second = static_cast<double>(read->samples) / read->seconds,
                 .bytes_per_second = static_cast<double>(read->bytes) / read->seconds};
}

// CPU nanoseconds of one image on one worker.
double NanosecondsOf(const PlanCost& cost) {
  return static_cast<double>(cost.work_ns) * cost.clocked.share() /
         static_cast<double>(cost.images);
}

// Applies the plan to a few images, to know how many take kPartNs.
Result<double> Probe(const SampleSource& source, const Plan& plan, uint64_t seed,
                     const std::function<bool(uint64_t, uint64_t)>& go_on) {
  constexpr uint64_t kFew = 8;
  ASSIGN_OR_RETURN(const PlanCost cost, MeasurePlan(source, plan, kFew, 1, seed, go_on));
  if (cost.images > 0) return NanosecondsOf(cost);
  return Error{Code::kDataLoss, "no image could be decoded; the first: " + cost.first_refusal};
}

// All workers decode at the same time, because they share caches, memory and perhaps cores
// (hyperthreads): so many times the speed of one would be too much. Other programs count as little
// as possible: the images are divided by the CPU time of their worker.
Status MeasureDecoding(const SampleSource& source, const Plan& plan, uint64_t seed,
                       const KeepExplaining& keep_going, Ceilings& ceilings) {
  constexpr uint64_t kMostImages = 512, kMostRounds = 1000;
  std::atomic<bool> interrupted{false};
  const auto still_wanted = [&](uint64_t /*done*/, uint64_t /*total*/) { return !interrupted; };
  const auto ask = [&](uint64_t /*done*/, uint64_t /*total*/) {
    if (!keep_going("decoding alone")) interrupted = true;
    return !interrupted;
  };
  ASSIGN_OR_RETURN(const double expected, Probe(source, plan, seed, ask));
  const auto affordable = static_cast<uint64_t>(kPartNs / std::max(expected, 1.0));
  const uint64_t images = std::clamp<uint64_t>(affordable / 2, 1, kMostImages);
  const uint64_t distinct = std::min(images, source.size());
  const uint64_t rounds = std::clamp<uint64_t>(affordable / distinct, 2, kMostRounds) - 1;
  std::vector<Result<PlanCost>> costs(static_cast<size_t>(ceilings.workers), PlanCost());
  Together(ceilings.workers, [&](int worker) {
    const auto own = static_cast<size_t>(worker);
    const auto& go_on = worker == 0 ? std::function(ask) : std::function(still_wanted);
    costs[own] = MeasurePlan(source, plan, images, static_cast<int>(rounds), seed + own, go_on);
  });
  double cpu_ns = 0;
  uint64_t decoded = 0;
  for (const Result<PlanCost>& cost : costs) {
    if (!cost.ok()) return cost.error();
    if (cost->images == 0) return Error{Code::kDataLoss, cost->first_refusal};
    ceilings.decode.images_per_second += 1e9 / NanosecondsOf(*cost);
    cpu_ns += static_cast<double>(cost->work_ns) * cost->clocked.share();
    decoded += cost->images;
  }
  ceilings.decode_seconds = cpu_ns * 1e-9 / static_cast<double>(decoded);
  ceilings.decode.bytes_per_second =
      ceilings.decode.images_per_second * static_cast<double>(ceilings.image_bytes);
  return {};
}

// Writes rows, one behind the other, into memory of about `bytes`, again and again; returns bytes
// per second of CPU time.
Result<double> WriteRows(size_t row_bytes, size_t bytes) {
  const size_t rows = std::max<size_t>(bytes / row_bytes, 2);
  ASSIGN_OR_RETURN(const Mapping memory, Mapping::Map(rows * row_bytes, /*huge_pages=*/true));
  std::memset(memory.data(), 0, memory.size());  // the kernel provides the pages
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
Status MeasureMemory(const BenchOptions& options, Ceilings& ceilings) {
  constexpr uint64_t kBeyondCaches = uint64_t{512} << 20;
  const uint64_t budget = options.runtime.memory_budget;
  const uint64_t bytes = std::min(kBeyondCaches, budget > 0 ? budget : DefaultMemory());
  const auto workers = static_cast<size_t>(ceilings.workers);
  std::vector<Result<double>> rates(workers, 0.0);
  Together(ceilings.workers, [&](int worker) {
    rates[static_cast<size_t>(worker)] = WriteRows(ceilings.image_bytes, bytes / workers);
  });
  for (const Result<double>& rate : rates) {
    if (!rate.ok()) return rate.error();
    ceilings.memory.bytes_per_second += *rate;
  }
  ceilings.memory.images_per_second =
      ceilings.memory.bytes_per_second / static_cast<double>(ceilings.image_bytes);
  return {};
}

// Copies batches to the first device, if the run did not.
Status MeasureCopy(const BenchOptions& options, Ceilings& ceilings) {
  const double images = options.loader.batch_size;
  double rate = 0, bytes = 0;
  if (options.device) {
    rate = ceilings.run.device->bare_copy_rate;
    bytes = static_cast<double>(ceilings.run.device->copy_bytes);
    ceilings.device = options.device->name.ToString();
  } else {
    const CudaReport found = LookForCuda();
    if (found.devices.empty()) {
      ceilings.copy.why_not = "no device: " + found.why_not;
      return {};
    }
    ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse("cuda:0"));
    ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, Device::Open(name));
    bytes = images * static_cast<double>(ceilings.image_bytes);
    ASSIGN_OR_RETURN(rate, BareCopyRate(*device, static_cast<size_t>(bytes)));
    ceilings.device = name.ToString();
  }
  ceilings.copy = {.images_per_second = rate / bytes * images, .bytes_per_second = rate};
  return {};
}

Status MeasureRun(BenchOptions options, const KeepExplaining& keep_going, Ceilings& ceilings) {
  options.epochs = kWithoutEnd;
  bool interrupted = false;
  ASSIGN_OR_RETURN(ceilings.run, RunBench(options, [&](const BenchProgress& progress) {
                     interrupted = !keep_going("the run");
                     const bool late = progress.seconds >= kRunSeconds && progress.batches > 0;
                     return !interrupted && !late;
                   }));
  ceilings.run.interrupted = interrupted;
  ceilings.run.options.epochs = ceilings.run.epochs + 1;  // that began
  return {};
}

}  // namespace

Result<Ceilings> MeasureCeilings(const BenchOptions& options, const KeepExplaining& keep_going) {
  if (!options.loader.views.empty()) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "--explain does not measure recipes with several views",
                 .advice = "Put the transforms of one view into a recipe of their own"};
  }
  ASSIGN_OR_RETURN(const std::optional<Plan> plan, PlanOf(options.loader, false));
  Ceilings ceilings;
  ceilings.workers = options.runtime.threads > 0 ? options.runtime.threads : DefaultThreads();
  ceilings.image_bytes = plan->row_bytes();
  ASSIGN_OR_RETURN(ceilings.storage, MeasureStorage(options, keep_going, ceilings.cached_before));
  TRY(MeasureDecoding(*options.loader.source, *plan, options.loader.seed, keep_going, ceilings));
  TRY(MeasureRun(options, keep_going, ceilings));
  if (ceilings.run.interrupted) {
    ceilings.memory.why_not = ceilings.copy.why_not = "interrupted";
    return ceilings;
  }
  TRY(MeasureMemory(options, ceilings));  // after the run, whose peak of memory is reported
  TRY(MeasureCopy(options, ceilings));
  return ceilings;
}

}  // namespace stoker
