// Measures the CPU microseconds per sample of everything except read, decode and resize: order,
// drawing, scheduling, counting, delivery.
//
// The files are tiny and in memory, so that little else is left: the result is the CPU time of the
// whole process per sample through a loader, minus that of the reader thread outside its calls into
// the loader, minus that of Plan::Apply on the same bytes in a plain loop. All three are CPU times,
// so that a busy machine does not matter (except for its caches).
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/synth/photograph.h"
#include "engine/loader/loader.h"
#include "engine/runtime/runtime_with_readers.h"
#include "io/memory/arrays.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

constexpr int kSide = 16;
constexpr uint32_t kBatch = 64;

double CpuMicroseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto microseconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
}

const std::vector<uint8_t>& TinyPhotograph() {
  static const std::vector<uint8_t> file =
      RenderPhotograph({.width = kSide, .height = kSide}, /*seed=*/0, /*index=*/0);
  return file;
}

std::vector<Transform> TinyTransforms() {
  return {RandomResizedCrop{.height = kSide, .width = kSide}, RandomHorizontalFlip{}};
}

// A source of as many samples as ImageNet has, all identical.
class TinySource final : public SampleSource {
 public:
  uint64_t size() const override { return 1'281'167; }
  std::span<const Field> fields() const override { return ImageFields(/*labels=*/true); }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  void FixedRows(size_t /*field*/, std::span<const uint64_t> ids, void* rows) const override {
    auto* label = static_cast<int64_t*>(rows);
    for (const uint64_t id : ids) *label++ = static_cast<int64_t>(id % 1000);
  }
  void PathOf(uint32_t, std::string& path) const override {
    path = "/data/imagenet/train/n01440764/n01440764_10026.JPEG";
  }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "tiny"; }

 private:
  std::vector<std::string> classes_;
};

// Every read has completed when Submit returns.
class TinyReader final : public Reader {
 public:
  size_t Submit(std::span<ReadRequest* const> requests) override {
    const std::vector<uint8_t>& file = TinyPhotograph();
    for (ReadRequest* request : requests) {
      request->status = request->buffer.Grow(file.size());
      std::memcpy(request->buffer.data(), file.data(), file.size());
      request->size = file.size();
      finished_.push_back(request);
    }
    return requests.size();
  }
  size_t Reap(std::span<ReadRequest*> done, bool /*wait*/) override {
    const size_t count = std::min(done.size(), finished_.size());
    std::copy_n(finished_.end() - static_cast<ptrdiff_t>(count), count, done.begin());
    finished_.resize(finished_.size() - count);
    return count;
  }
  size_t in_flight() const override { return finished_.size(); }
  size_t capacity() const override { return 32; }
  const char* name() const override { return "tiny"; }

 private:
  std::vector<ReadRequest*> finished_;
};

// Returns the CPU time of Plan::Apply alone.
double ApplyMicroseconds() {
  constexpr uint64_t kSamples = 20'000;
  const Plan plan = Plan::Compile(TinyTransforms()).value();
  MemoryBudget budget(64 << 20);
  const auto workspace = plan.MakeWorkspace(budget);
  std::vector<uint8_t> file = TinyPhotograph();
  const size_t size = file.size();
  file.resize(size + kBufferPadding);
  std::vector<uint8_t> row(plan.row_bytes());
  StageTimes times;
  double begun = 0;
  for (uint64_t i = 0; i < 2 * kSamples; ++i) {
    if (i == kSamples) begun = CpuMicroseconds();  // the first half warms up
    plan.Apply({file.data(), size}, {0, 0, i}, *workspace, row.data(), times).value();
  }
  return (CpuMicroseconds() - begun) / kSamples;
}

// Microseconds a sample.
struct PerSample {
  double all = 0;   // CPU of the process
  double read = 0;  // CPU of the reader threads
  double work = 0;  // CPU of the workers
};

// Takes one batch per iteration.
PerSample TakeBatches(benchmark::State& state, LoaderOptions options) {
  const std::shared_ptr<Loader> loader = Loader::Open(std::move(options)).value();
  std::unique_ptr<Iterator> iterator = loader->Iterate();
  const auto next = [&] {
    Batch batch = iterator->Next().value();
    if (!batch) iterator = loader->Iterate();  // the next epoch
    return batch;
  };
  for (int i = 0; i < 100; ++i) (void)next();

  const LoaderStats before = loader->Stats();
  const double cpu_before = CpuMicroseconds();
  for (auto _ : state) benchmark::DoNotOptimize(next());
  const double cpu = CpuMicroseconds() - cpu_before;
  const LoaderStats after = loader->Stats();

  const auto samples = static_cast<double>(after.samples - before.samples);
  const auto each = [samples](uint64_t ns) { return static_cast<double>(ns) / 1e3 / samples; };
  return {.all = cpu / samples,
          .read = each(after.read_cpu_ns - before.read_cpu_ns),
          .work = each(after.work_ns - before.work_ns)};
}

void Overhead(benchmark::State& state, ExecutorKind executor) {
  RuntimeOptions runtime;
  runtime.threads = static_cast<int>(state.range(0));
  runtime.executor = executor;
  LoaderOptions options;
  options.source = std::make_shared<TinySource>();
  options.transforms = TinyTransforms();
  options.batch_size = kBatch;
  options.shuffle = true;
  options.runtime = RuntimeWithReaders(runtime, [] {
                      return Result<std::unique_ptr<Reader>>(std::make_unique<TinyReader>());
                    }).value();
  const double apply = ApplyMicroseconds();
  const PerSample cost = TakeBatches(state, std::move(options));
  state.counters["all_us"] = cost.all;
  state.counters["read_us"] = cost.read;
  state.counters["apply_us"] = apply;
  state.counters["overhead_us"] = cost.all - cost.read - apply;
}

BENCHMARK_CAPTURE(Overhead, tbb, ExecutorKind::kTbb)->Arg(1)->Arg(2)->MinTime(1.0);
BENCHMARK_CAPTURE(Overhead, threads, ExecutorKind::kThreads)->Arg(1)->Arg(2)->MinTime(1.0);

// Small rows in memory, of MNIST's shape.
struct SmallRows {
  static constexpr uint64_t kSamples = 60'000;
  static constexpr size_t kRowBytes = 28 * 28;

  std::vector<uint8_t> images = std::vector<uint8_t>(kSamples * kRowBytes, 7);
  std::vector<int64_t> labels = std::vector<int64_t>(kSamples, 1);

  std::shared_ptr<const SampleSource> Source() const {
    const ArrayColumn image{"image", DType::kU8, {28, 28}, images.data(), kSamples};
    const ArrayColumn label{"label", DType::kI64, {}, labels.data(), kSamples};
    return Arrays({image, label}, nullptr).value();
  }
};

// Returns the CPU time of copying the same rows, in a similar order, into a batch's worth of
// memory.
double CopyMicroseconds(const SmallRows& rows, size_t batch) {
  std::vector<uint8_t> images(batch * SmallRows::kRowBytes);
  std::vector<int64_t> labels(batch);
  double begun = 0;
  for (uint64_t i = 0; i < 5 * SmallRows::kSamples; ++i) {
    if (i == SmallRows::kSamples) begun = CpuMicroseconds();
    const uint64_t id = i * 7919 % SmallRows::kSamples;  // a prime: each id once per epoch
    std::memcpy(images.data() + i % batch * SmallRows::kRowBytes,
                rows.images.data() + id * SmallRows::kRowBytes, SmallRows::kRowBytes);
    labels[i % batch] = rows.labels[id];
    benchmark::ClobberMemory();
  }
  return (CpuMicroseconds() - begun) / (4 * SmallRows::kSamples);
}

// Measures the same for rows in memory that are only copied: everything except copying.
void CopyOverhead(benchmark::State& state) {
  const SmallRows rows;
  LoaderOptions options;
  options.source = rows.Source();
  options.batch_size = static_cast<uint32_t>(state.range(1));
  options.shuffle = true;
  RuntimeOptions runtime;
  runtime.threads = static_cast<int>(state.range(0));
  options.runtime = Runtime::Create(runtime).value();
  const double copy = CopyMicroseconds(rows, options.batch_size);
  const PerSample cost = TakeBatches(state, std::move(options));
  state.counters["all_us"] = cost.all;
  state.counters["work_us"] = cost.work;
  state.counters["copy_us"] = copy;
  state.counters["overhead_us"] = cost.all - copy;
}

BENCHMARK(CopyOverhead)->ArgsProduct({{1, 2}, {64, 1024}})->MinTime(1.0);

}  // namespace
}  // namespace stoker

BENCHMARK_MAIN();
