#include "bench/device/crop_kernels.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "bindings/cli/bench/device_scratch.h"
#include "core/batch/device_crop.h"
#include "core/result/try.h"
#include "engine/loader/loader.h"
#include "gpu/ops/deferred_ops_job.h"
#include "gpu/staging/device_ring.h"
#include "gpu/staging/issue_batch.h"
#include "gpu/staging/issue_crops.h"
#include "io/select/combine.h"

namespace stoker {

namespace {

constexpr uint8_t kUnwritten = 0xa5;
constexpr int kBuffers = 3;
constexpr int kBatches = kBuffers + 1;  // the first one warms up, the others are kept

using Source = std::shared_ptr<const SampleSource>;

Result<Source> Repeated(Source source, uint64_t samples) {
  if (source->size() == 0) return Error{Code::kInvalidArgument, "there are no samples"};
  if (source->size() >= samples) return source;
  const std::vector<Source> copies((samples - 1) / source->size() + 1, source);
  return Combine(copies);
}

LoaderOptions OptionsOf(Source source, uint32_t batch_size, std::shared_ptr<Runtime> runtime) {
  LoaderOptions options;
  options.source = std::move(source);
  options.transforms = {RandomResizedCrop{.height = 224, .width = 224},
                        RandomHorizontalFlip{.p = 0.5},
                        Normalize{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}}};
  options.dtype = DType::kF16;
  options.layout = Layout::kNchw;
  options.batch_size = batch_size;
  options.shuffle = true;
  options.drop_remainder = true;
  options.depth = kBuffers;
  options.runtime = std::move(runtime);
  return options;
}

// Batches whose crops the device decodes. As many are held as there is memory for, so that the
// device has nothing else to do.
class HeldBatches {
 public:
  static Result<std::unique_ptr<HeldBatches>> Take(const std::shared_ptr<Device>& device,
                                                   Source source, uint32_t batch_size) {
    std::unique_ptr<HeldBatches> held(new HeldBatches);
    RuntimeOptions of_runtime;
    of_runtime.threads = 1;  // its time is that of a core, however busy the other cores are
    of_runtime.executor = ExecutorKind::kThreads;
    ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, Runtime::Create(of_runtime));
    LoaderOptions options = OptionsOf(std::move(source), batch_size, std::move(runtime));
    options.to_device = {.devices = {device}, .buffers = kBuffers, .decodes = true};
    ASSIGN_OR_RETURN(held->loader_, Loader::Open(std::move(options)));
    held->iterator_ = held->loader_->Iterate();
    for (int i = 0; i < kBatches; ++i) {
      ASSIGN_OR_RETURN(DeviceBatch batch, held->iterator_->NextOnDevice());
      TRY(batch.Wait());
      if (i == 0) held->warm_ = held->loader_->Stats();
      if (i >= kBatches - kBuffers) held->batches_.push_back(std::move(batch));
    }
    return held;
  }

  std::span<const DeviceBatch> batches() const { return batches_; }
  // The CPU time of a worker for a row.
  double WorkerNs() const {
    const LoaderStats now = loader_->Stats();
    const uint64_t rows = std::max<uint64_t>(now.samples - warm_.samples, 1);
    return now.clocked.share() * static_cast<double>(now.work_ns - warm_.work_ns) /
           static_cast<double>(rows);
  }

 private:
  HeldBatches() = default;

  std::shared_ptr<Loader> loader_;
  std::unique_ptr<Iterator> iterator_;
  std::vector<DeviceBatch> batches_;
  LoaderStats warm_;  // when the first batch had arrived
};

// The images of the same batch by the CPU.
Result<std::vector<uint8_t>> OnTheHost(Source source, const DeviceBatch& batch) {
  ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, Runtime::Create({}));
  LoaderOptions options =
      OptionsOf(std::move(source), static_cast<uint32_t>(batch.rows()), std::move(runtime));
  ASSIGN_OR_RETURN(std::shared_ptr<Loader> loader, Loader::Open(std::move(options)));
  const std::unique_ptr<Iterator> iterator = loader->Iterate();
  TRY(iterator->Seek(batch.name()));
  ASSIGN_OR_RETURN(const Batch same, iterator->Next());
  const auto* const data = static_cast<const uint8_t*>(same.images().data);
  return std::vector<uint8_t>(data, data + same.images().bytes());
}

// Names a kernel: DecodeCrops launches those whose number is not 0.
using Kernel = uint32_t decode::CropBatch::*;
constexpr Kernel kUnpack = &decode::CropBatch::most_runs;
constexpr Kernel kEntropy = &decode::CropBatch::most_intervals;
constexpr Kernel kResample = &decode::CropBatch::most_tiles;

// The work of the kernels on a batch that has arrived.
class KernelWork {
 public:
  KernelWork(const std::shared_ptr<Device>& device, DeviceScratch& scratch, const RingEntry& entry)
      : device_(*device), scratch_(scratch), entry_(entry), job_(JobOf(*entry.ring, entry)) {}

  Status Prepare() {
    const DeviceRing& ring = *entry_.ring;
    places_.resize(static_cast<size_t>(entry_.rows));
    std::vector<uint8_t> crops(ring.plan().crops.bytes);
    all_ = CropsOf(ring, entry_, 0);
    TRY(Read(places_.data(), all_.crop_at, places_.size() * sizeof(uint64_t)));
    TRY(Read(crops.data(), all_.bytes, crops.size()));
    SetMost(all_, places_, crops.data());
    for (const uint64_t place : places_) {
      if (place == decode::kNoCrop) continue;
      decode::DeviceCrop crop;
      std::memcpy(&crop, crops.data() + place, sizeof(crop));
      ++crops_;
      crop_bytes_ += crop.bytes;
    }
    return {};
  }

  bool Has(Kernel kernel) const { return all_.*kernel != 0; }
  Status Run(Kernel kernel, DeviceStream stream) const {
    decode::CropBatch part = all_;
    part.most_runs = part.most_intervals = part.most_tiles = 0;
    part.*kernel = all_.*kernel;
    return device_.DecodeCrops(part, stream);
  }
  Status Finish(DeviceStream stream) const { return device_.ApplyDeferred(job_, stream); }
  Status RunAll(DeviceStream stream) const {
    TRY(device_.DecodeCrops(all_, stream));
    return Finish(stream);
  }

  // Runs the kernels, each by itself or together, on memory with other bytes.
  Status Check(std::span<const uint8_t> wanted, bool apart) const {
    const DeviceRing& ring = *entry_.ring;
    const Column& images = entry_.columns[0];
    TRY(Overwrite(all_.samples, ring.plan().crops.samples * decode::kGroupSamples));
    TRY(Overwrite(images.data, images.bytes()));
    for (size_t row = 0; row < places_.size(); ++row) {
      if (places_[row] == decode::kNoCrop) continue;
      TRY(Overwrite(all_.to + row * all_.row_bytes, all_.row_bytes));
    }
    if (apart) {
      for (const Kernel kernel : {kUnpack, kEntropy, kResample}) {
        TRY(Run(kernel, scratch_.stream()));
      }
      TRY(Finish(scratch_.stream()));
    } else {
      TRY(RunAll(scratch_.stream()));
    }
    std::vector<uint8_t> got(images.bytes());
    TRY(Read(got.data(), images.data, got.size()));
    if (std::ranges::equal(got, wanted)) return {};
    return Error{Code::kDataLoss, "the device's pixels are not those of the CPU"};
  }

  uint64_t crops() const { return crops_; }
  uint64_t crop_bytes() const { return crop_bytes_; }

 private:
  Status Read(void* to, const void* from, size_t bytes) const {
    TRY(device_.Copy(to, from, bytes, scratch_.stream()));
    return scratch_.Synchronize();
  }
  Status Overwrite(void* to, size_t bytes) const {
    static const std::vector<uint8_t> others(1 << 20, kUnwritten);
    for (size_t at = 0; at < bytes; at += others.size()) {
      TRY(device_.Copy(static_cast<uint8_t*>(to) + at, others.data(),
                       std::min(others.size(), bytes - at), scratch_.stream()));
    }
    return {};
  }

  Device& device_;
  DeviceScratch& scratch_;
  const RingEntry& entry_;
  const DeferredOpsJob job_;
  decode::CropBatch all_;
  std::vector<uint64_t> places_;
  uint64_t crops_ = 0, crop_bytes_ = 0;
};

// The kernels' times on batches in turn.
class KernelTimer {
 public:
  KernelTimer(DeviceScratch& scratch, std::span<const KernelWork> works, int rounds)
      : scratch_(scratch), works_(works), rounds_(rounds) {}

  Result<CropKernels> Measure() {
    CropKernels times;
    ASSIGN_OR_RETURN(times.unpack, Time(kUnpack));
    ASSIGN_OR_RETURN(times.entropy, Time(kEntropy));
    ASSIGN_OR_RETURN(times.resample, Time(kResample));
    ASSIGN_OR_RETURN(times.finish, InTurn(&KernelWork::Finish));
    ASSIGN_OR_RETURN(times.all, InTurn(&KernelWork::RunAll));
    return times;
  }

 private:
  using Issue = std::function<Status(const KernelWork&, DeviceStream)>;
  Result<WorkTimes> InTurn(const Issue& issue) {
    size_t next = 0;
    return scratch_.Time(
        [&](DeviceStream stream) { return issue(works_[next++ % works_.size()], stream); },
        rounds_);
  }
  Result<std::optional<WorkTimes>> Time(Kernel kernel) {
    const bool any =
        std::ranges::any_of(works_, [&](const auto& work) { return work.Has(kernel); });
    if (!any) return std::optional<WorkTimes>();
    ASSIGN_OR_RETURN(const WorkTimes times,
                     InTurn([kernel](const KernelWork& work, DeviceStream stream) {
                       return work.Run(kernel, stream);
                     }));
    return std::optional(times);
  }

  DeviceScratch& scratch_;
  const std::span<const KernelWork> works_;
  const int rounds_;
};

}  // namespace

Result<CropKernels> MeasureCropKernels(const std::shared_ptr<Device>& device, Source source,
                                       uint32_t batch_size, int rounds) {
  ASSIGN_OR_RETURN(source, Repeated(std::move(source), uint64_t{kBatches} * batch_size));
  ASSIGN_OR_RETURN(const std::unique_ptr<HeldBatches> held,
                   HeldBatches::Take(device, source, batch_size));
  DeviceScratch scratch(*device);
  TRY(scratch.Prepare());
  std::vector<KernelWork> works;
  std::vector<std::vector<uint8_t>> wanted;
  uint64_t crops = 0, crop_bytes = 0;
  for (const DeviceBatch& batch : held->batches()) {
    ASSIGN_OR_RETURN(wanted.emplace_back(), OnTheHost(source, batch));
    TRY(works.emplace_back(device, scratch, *batch.Owner()).Prepare());
    crops += works.back().crops();
    crop_bytes += works.back().crop_bytes();
  }
  if (crops == 0) {
    return Error{Code::kInvalidArgument,
                 "the device decodes none of these photographs: they are neither packed nor have "
                 "they a crop index"};
  }
  TRY(works[0].Check(wanted[0], /*apart=*/true));
  ASSIGN_OR_RETURN(CropKernels times, KernelTimer(scratch, works, rounds).Measure());
  for (size_t i = 0; i < works.size(); ++i) TRY(works[i].Check(wanted[i], /*apart=*/false));
  times.crops = static_cast<double>(crops) / static_cast<double>(works.size());
  times.crop_bytes = static_cast<double>(crop_bytes) / static_cast<double>(crops);
  times.host_ns = held->WorkerNs();
  return times;
}

}  // namespace stoker
