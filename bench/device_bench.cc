// Measures how close copies and the kernel come to the limits of the device:
//
//   device_bench [DEVICE] [--quick]     cuda:0 unless another one is named
//
// Batches are rows in memory, so that production is not the limit. Prints three tables: copies of
// batches of 8 to 256 MiB compared with a bare copy; the same behind a step that takes longer than
// the copy; the kernel compared with a copy on the device. All times are measured on the device.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/cli/bench/device_consumer.h"
#include "core/try.h"
#include "engine/loader/loader.h"
#include "gpu/deferred_ops_job.h"
#include "io/sources/arrays.h"

namespace stoker {
namespace {

constexpr size_t kRowBytes = 224 * 224 * 3;

struct Staged {
  StagerStats stager;
  StepTimes steps;
};

constexpr double kGiga = 1e9;

double PerSecond(uint64_t amount, uint64_t nanoseconds) {
  return static_cast<double>(amount) * 1e9 /
         static_cast<double>(std::max<uint64_t>(nanoseconds, 1));
}

// Stages `batches` batches of `batch_size` rows, each used by a step.
Result<Staged> Stage(const std::shared_ptr<Device>& device, uint32_t batch_size, uint64_t batches,
                     uint64_t step_ns) {
  static const std::vector<uint8_t> row(kRowBytes, 7);
  std::vector<ArrayColumn> columns{{.name = "image",
                                    .row_shape = {224, 224, 3},
                                    .data = row.data(),
                                    .samples = uint64_t{16} * batch_size,
                                    .row_stride = 0}};
  ASSIGN_OR_RETURN(std::shared_ptr<const SampleSource> source, Arrays(std::move(columns), nullptr));
  RuntimeOptions runtime_options;
  runtime_options.memory_budget = uint64_t{8} << 30;
  ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, Runtime::Create(runtime_options));
  LoaderOptions options;
  options.source = source;
  options.batch_size = batch_size;
  options.runtime = runtime;
  options.to_device = {.device = device, .timed = true};
  ASSIGN_OR_RETURN(std::shared_ptr<Loader> loader, Loader::Open(std::move(options)));
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceConsumer> consumer, DeviceConsumer::Make(device, step_ns));
  std::unique_ptr<Iterator> iterator = loader->Iterate();
  for (uint64_t taken = 0; taken < batches;) {
    ASSIGN_OR_RETURN(DeviceBatch batch, iterator->NextOnDevice());
    if (!batch) {
      iterator = loader->Iterate();  // the next epoch
      continue;
    }
    TRY(consumer->Step(std::move(batch)));
    ++taken;
  }
  ASSIGN_OR_RETURN(StepTimes steps, consumer->Drain());
  return Staged{loader->StageStats(), steps};
}

Status Copies(const std::shared_ptr<Device>& device, uint32_t max_mib) {
  std::printf("copies            bare        staged\n");
  for (uint32_t mib = 8; mib <= max_mib; mib *= 2) {
    const auto batch_size = static_cast<uint32_t>((uint64_t{mib} << 20) / kRowBytes);
    ASSIGN_OR_RETURN(double bare, BareCopyRate(*device, size_t{batch_size} * kRowBytes));
    ASSIGN_OR_RETURN(Staged staged, Stage(device, batch_size, 64, 0));
    const double rate = PerSecond(staged.stager.copied_bytes, staged.stager.copy_ns);
    std::printf("  %4u MiB  %7.2f GB/s  %7.2f GB/s  %6.1f %%\n", mib, bare / kGiga, rate / kGiga,
                100 * rate / bare);
  }
  return {};
}

Status BehindSteps(const std::shared_ptr<Device>& device, uint32_t max_mib) {
  std::printf("behind a step     step alone      with copies    slower     hidden\n");
  for (uint32_t mib = 8; mib <= max_mib; mib *= 4) {
    const auto batch_size = static_cast<uint32_t>((uint64_t{mib} << 20) / kRowBytes);
    ASSIGN_OR_RETURN(double bare, BareCopyRate(*device, size_t{batch_size} * kRowBytes));
    // Longer than the copy, and than making the batch on one core.
    const double copy_s = static_cast<double>(batch_size) * kRowBytes / std::min(bare, 5 * kGiga);
    const auto step_ns = static_cast<uint64_t>(2e9 * copy_s);
    ASSIGN_OR_RETURN(uint64_t alone, BareStep(*device, step_ns));
    constexpr uint64_t kSteps = 100;
    ASSIGN_OR_RETURN(Staged staged, Stage(device, batch_size, kSteps, step_ns));
    const double step = static_cast<double>(staged.steps.step_ns) / kSteps;
    const double idle = static_cast<double>(staged.steps.idle_ns);
    std::printf("  %4u MiB      %9.3f ms    %9.3f ms    %6.2f %%   %6.2f %%\n", mib,
                static_cast<double>(alone) * 1e-6, step * 1e-6,
                100 * (step / static_cast<double>(alone) - 1),
                100 * (1 - idle / static_cast<double>(staged.stager.copy_ns)));
  }
  return {};
}

Status Kernels(Device& device, int64_t rows) {
  std::printf("kernel            copy on the device     kernel\n");
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kU8}) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      DeferredOpsJob job{
          .rows = rows, .height = 224, .width = 224, .dtype = dtype, .layout = layout};
      std::fill_n(job.scale, 3, 1.0F / 255);
      ASSIGN_OR_RETURN(DeferredOpsRate rate, MeasureDeferredOps(device, job));
      std::printf("  %-8s %s    %8.1f GB/s     %8.1f GB/s  %6.1f %%\n", NameOf(dtype),
                  NameOf(layout), rate.copy / kGiga, rate.finish / kGiga,
                  100 * rate.finish / rate.copy);
    }
  }
  return {};
}

Status Run(std::string_view name, bool quick) {
  ASSIGN_OR_RETURN(DeviceName parsed, DeviceName::Parse(name));
  ASSIGN_OR_RETURN(std::shared_ptr<Device> device, Device::Open(parsed));
  Status s = Copies(device, quick ? 8 : 256);
  if (s.ok()) s = BehindSteps(device, quick ? 8 : 128);
  if (s.ok()) s = Kernels(*device, quick ? 16 : 1024);
  return s;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  std::string_view name = "cuda:0";
  bool quick = false;
  for (const std::string_view argument : std::vector<std::string_view>(argv + 1, argv + argc)) {
    if (argument == "--quick") {
      quick = true;
    } else {
      name = argument;
    }
  }
  const stoker::Status status = stoker::Run(name, quick);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().ToString().c_str());
  return status.ok() ? 0 : 1;
}
