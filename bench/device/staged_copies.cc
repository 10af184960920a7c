#include "bench/device/staged_copies.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "bindings/cli/bench/device_consumer.h"
#include "bindings/cli/bench/device_scratch.h"
#include "core/result/try.h"
#include "engine/loader/loader.h"
#include "gpu/staging/piece_copier.h"
#include "io/memory/arrays.h"

namespace stoker {

namespace {

constexpr size_t kRowBytes = 224 * 224 * 3;
constexpr double kGiga = 1e9;

uint32_t RowsIn(uint32_t mib) { return static_cast<uint32_t>((uint64_t{mib} << 20) / kRowBytes); }

double PerSecond(uint64_t amount, uint64_t nanoseconds) {
  return static_cast<double>(amount) * 1e9 /
         static_cast<double>(std::max<uint64_t>(nanoseconds, 1));
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Result<std::shared_ptr<Runtime>> MakeRuntime() {
  RuntimeOptions options;
  options.memory_budget = uint64_t{8} << 30;
  return Runtime::Create(options);
}

// Rows of random bytes, all different. They overlap, so that a core's cache holds their memory.
Result<std::shared_ptr<const SampleSource>> RandomRows(uint64_t rows) {
  constexpr int64_t kApart = 64;
  const auto bytes = std::make_shared<std::vector<uint8_t>>(kRowBytes + kApart * rows);
  std::minstd_rand random;
  std::ranges::generate(*bytes, [&] { return static_cast<uint8_t>(random() >> 8U); });
  std::vector<ArrayColumn> columns{{.name = "image",
                                    .row_shape = {224, 224, 3},
                                    .data = bytes->data(),
                                    .samples = rows,
                                    .row_stride = kApart}};
  return Arrays(std::move(columns), bytes);
}

// A loader of rows in memory, so that production is not the limit, and a consumer.
class StagedRows {
 public:
  static Result<std::unique_ptr<StagedRows>> Open(const std::shared_ptr<Device>& device,
                                                  std::shared_ptr<Runtime> runtime,
                                                  uint32_t batch_size, size_t piece_bytes,
                                                  uint64_t step_ns = 0) {
    std::unique_ptr<StagedRows> rows(new StagedRows);
    LoaderOptions options;
    ASSIGN_OR_RETURN(options.source, RandomRows(uint64_t{16} * batch_size));
    options.batch_size = batch_size;
    options.depth = 4;
    options.runtime = std::move(runtime);
    options.to_device = {.devices = {device}, .timed = true, .piece_bytes = piece_bytes};
    rows->buffers_ = static_cast<size_t>(options.to_device->buffers);
    ASSIGN_OR_RETURN(rows->loader_, Loader::Open(std::move(options)));
    ASSIGN_OR_RETURN(rows->consumer_, DeviceConsumer::Make(device, step_ns));
    rows->iterator_ = rows->loader_->Iterate();
    return rows;
  }

  // Takes batches, each used by a step. Then holds as many as there is device memory for, until the
  // next call, so that nothing is copied while others are measured.
  Status Take(uint64_t batches) {
    held_.clear();
    for (uint64_t i = 0; i < batches; ++i) {
      ASSIGN_OR_RETURN(DeviceBatch batch, Next());
      TRY(consumer_->Step(std::move(batch)));
    }
    while (held_.size() < buffers_) {
      ASSIGN_OR_RETURN(held_.emplace_back(), Next());
      TRY(held_.back().Wait());
    }
    return {};
  }

  Result<StepTimes> Drain() { return consumer_->Drain(); }
  DeviceCopyStats stats() const { return loader_->CopyStats(); }
  Loader& loader() { return *loader_; }

 private:
  StagedRows() = default;

  Result<DeviceBatch> Next() {
    ASSIGN_OR_RETURN(DeviceBatch batch, iterator_->NextOnDevice());
    if (batch) return batch;
    iterator_ = loader_->Iterate();  // the next epoch
    return iterator_->NextOnDevice();
  }

  size_t buffers_ = 0;
  std::shared_ptr<Loader> loader_;
  std::unique_ptr<DeviceConsumer> consumer_;
  std::unique_ptr<Iterator> iterator_;
  std::vector<DeviceBatch> held_;
};

// The rate of bare copies that are issued one after another, as those of batches are: all but the
// first one start while the one before is made.
Result<double> BareRate(Device& device, size_t bytes, HostMemory memory) {
  const size_t copies = std::max<size_t>(2, (size_t{256} << 20) / bytes);
  constexpr int kMeasurements = 5;
  DeviceScratch scratch(device);
  TRY(scratch.Prepare());
  ASSIGN_OR_RETURN(void* from, scratch.Host(bytes, memory));
  ASSIGN_OR_RETURN(void* to, scratch.Allocate(bytes));
  const auto issue = [&](DeviceStream stream) -> Status {
    for (size_t i = 0; i < copies; ++i) TRY(device.Copy(to, from, bytes, stream));
    return {};
  };
  ASSIGN_OR_RETURN(const WorkTimes times, scratch.Time(issue, kMeasurements));
  return PerSecond(copies * bytes, times.median_ns);
}

// Rates of one kind of copies.
struct Series {
  double CopyRates::*median;
  std::vector<double> rates{};
};

struct BareSeries : Series {
  HostMemory memory{};
};

struct BatchSeries : Series {
  size_t piece_bytes = 0;
  std::unique_ptr<StagedRows> rows{};

  Status Take(uint64_t batches) {
    const DeviceCopyStats before = rows->stats();
    TRY(rows->Take(batches));
    const DeviceCopyStats now = rows->stats();
    rates.push_back(PerSecond(now.timed_bytes - before.timed_bytes, now.copy_ns - before.copy_ns));
    return {};
  }
};

}  // namespace

Result<CopyRates> MeasureCopies(const std::shared_ptr<Device>& device, uint32_t mib, int rounds,
                                uint64_t batches) {
  std::array<BareSeries, 4> bare{{{{&CopyRates::pageable}, HostMemory::kPageable},
                                  {{&CopyRates::registered}, HostMemory::kRegistered},
                                  {{&CopyRates::registered_huge}, HostMemory::kRegisteredHuge},
                                  {{&CopyRates::host_alloc}, HostMemory::kAllocated}}};
  std::array<BatchSeries, 3> staged{{{{&CopyRates::batches}, PieceCopier::kPieceBytes},
                                     {{&CopyRates::batches_32mib}, size_t{32} << 20},
                                     {{&CopyRates::batches_whole}, PieceCopier::kWhole}}};
  CopyRates all;
  ASSIGN_OR_RETURN(const std::shared_ptr<Runtime> runtime, MakeRuntime());
  for (BatchSeries& series : staged) {
    ASSIGN_OR_RETURN(series.rows,
                     StagedRows::Open(device, runtime, RowsIn(mib), series.piece_bytes));
    TRY(series.rows->Take(1));
    Loader& loader = series.rows->loader();
    const LoaderStats stats = loader.Stats();
    if (series.median == &CopyRates::batches) {
      all.pinned_bytes = stats.pinned_bytes;
      all.pinning_s = static_cast<double>(stats.pinning_ns) * 1e-9;
    }
    if (std::optional<std::string> warning = loader.TakeWarning()) all.memory_warning = warning;
  }
  for (int round = 0; round < rounds; ++round) {
    for (BareSeries& series : bare) {
      ASSIGN_OR_RETURN(series.rates.emplace_back(),
                       BareRate(*device, RowsIn(mib) * kRowBytes, series.memory));
    }
    for (BatchSeries& series : staged) TRY(series.Take(batches));
  }
  for (const BareSeries& series : bare) all.*series.median = Median(series.rates);
  for (const BatchSeries& series : staged) all.*series.median = Median(series.rates);
  return all;
}

Result<CopiesBehindSteps> MeasureBehindSteps(const std::shared_ptr<Device>& device, uint32_t mib,
                                             uint64_t steps) {
  const double bytes = static_cast<double>(RowsIn(mib)) * kRowBytes;
  ASSIGN_OR_RETURN(const double bare, BareCopyRate(*device, RowsIn(mib) * kRowBytes));
  // Longer than the copy, and than making the batch on one core.
  const auto step_ns = static_cast<uint64_t>(2e9 * bytes / std::min(bare, 5 * kGiga));
  ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, MakeRuntime());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<StagedRows> rows,
      StagedRows::Open(device, std::move(runtime), RowsIn(mib), PieceCopier::kPieceBytes, step_ns));
  TRY(rows->Take(steps));
  ASSIGN_OR_RETURN(const StepTimes times, rows->Drain());
  const double idle_ms = static_cast<double>(times.idle_ns) * 1e-6 / static_cast<double>(steps);
  const DeviceCopyStats stats = rows->stats();
  const double copy_ms = 1e3 * bytes / PerSecond(stats.timed_bytes, stats.copy_ns);
  return CopiesBehindSteps{.step_ms = static_cast<double>(step_ns) * 1e-6,
                           .idle_ms = idle_ms,
                           .copy_ms = copy_ms,
                           .hidden_at_least = std::max(0.0, 1 - idle_ms / copy_ms)};
}

}  // namespace stoker
