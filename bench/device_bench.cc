// Measures how close copies and the kernel come to the limits of a device:
//
//   device_bench DEVICE copies|small|steps|kernels [--quick]
//
// Batches are rows in memory, so that production is not the limit. All times are measured on the
// device. Each printed line is a JSON object, with rates in GB/s:
//
// copies   of 8 to 256 MiB: bare copies from each kind of host memory, and those of batches
//
// small    copies of 4 KiB beside large ones, which are whole or in pieces (small_copies.h)
//
// steps    the same batches behind a step that takes longer than their copies; they are hidden then
//
// kernels  the kernel that finishes batches, of each type, layout and deferred operation, and a
//          copy on the device of as many bytes
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/finish_kernel.h"
#include "bench/small_copies.h"
#include "bindings/cli/bench/device_consumer.h"
#include "core/try.h"
#include "engine/loader/loader.h"
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
  options.to_device = {.devices = {device}, .timed = true};
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

uint32_t BatchSize(uint32_t mib) {
  return static_cast<uint32_t>((uint64_t{mib} << 20) / kRowBytes);
}

Status Copies(const std::shared_ptr<Device>& device, bool quick) {
  constexpr std::pair<const char*, HostMemory> kMemories[] = {
      {"pageable", HostMemory::kPageable},
      {"registered", HostMemory::kRegistered},
      {"registered_huge", HostMemory::kRegisteredHuge},
      {"host_alloc", HostMemory::kAllocated}};
  for (uint32_t mib = 8; mib <= (quick ? 8 : 256); mib *= 2) {
    fmt::print("{{\"mib\": {}", mib);
    for (const auto& [name, memory] : kMemories) {
      ASSIGN_OR_RETURN(double bare, BareCopyRate(*device, BatchSize(mib) * kRowBytes, memory));
      fmt::print(", \"{}\": {:.2f}", name, bare / kGiga);
    }
    ASSIGN_OR_RETURN(Staged staged, Stage(device, BatchSize(mib), quick ? 8 : 64, 0));
    const double rate = PerSecond(staged.stager.copied_bytes, staged.stager.copy_ns);
    fmt::print(", \"batches\": {:.2f}}}\n", rate / kGiga);
  }
  return {};
}

Status BehindSteps(const std::shared_ptr<Device>& device, bool quick) {
  for (uint32_t mib = 8; mib <= (quick ? 8 : 128); mib *= 4) {
    ASSIGN_OR_RETURN(double bare, BareCopyRate(*device, BatchSize(mib) * kRowBytes));
    // Longer than the copy, and than making the batch on one core.
    const double copy_s =
        static_cast<double>(BatchSize(mib) * kRowBytes) / std::min(bare, 5 * kGiga);
    const auto step_ns = static_cast<uint64_t>(2e9 * copy_s);
    const uint64_t steps = quick ? 10 : 100;
    ASSIGN_OR_RETURN(Staged staged, Stage(device, BatchSize(mib), steps, step_ns));
    const auto idle = static_cast<double>(staged.steps.idle_ns);
    const auto copies = static_cast<double>(staged.stager.copy_ns);
    fmt::print(
        "{{\"mib\": {}, \"step_ms\": {:.3f}, \"idle_ms\": {:.3f}, \"copy_ms\": {:.3f}, "
        "\"hidden_at_least\": {:.4f}}}\n",
        mib, static_cast<double>(step_ns) * 1e-6, idle * 1e-6 / static_cast<double>(steps),
        copies * 1e-6 / static_cast<double>(steps), std::max(0.0, 1 - idle / copies));
  }
  return {};
}

Status Kernels(Device& device, bool quick) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kU8}) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      for (const FinishingOps& ops : kFinishingOps) {
        if (dtype == DType::kU8 && ops.noisy) continue;  // there is none for bytes
        DeferredOpsJob job{.rows = quick ? 2 : 1024,
                           .height = 224,
                           .width = 224,
                           .dtype = dtype,
                           .layout = layout};
        std::fill_n(job.scale, 3, 1.0F / 255);
        ASSIGN_OR_RETURN(const FinishRates rates, MeasureFinishing(device, job, ops));
        fmt::print(
            "{{\"dtype\": \"{}\", \"layout\": \"{}\", \"operations\": \"{}\", \"us\": {:.1f}, "
            "\"kernel\": {:.1f}, \"copy\": {:.1f}, \"of_copy\": {:.3f}}}\n",
            NameOf(dtype), NameOf(layout), ops.name, static_cast<double>(rates.kernel_ns) * 1e-3,
            rates.kernel / kGiga, rates.copy / kGiga, rates.kernel / rates.copy);
      }
    }
  }
  return {};
}

Status Run(const std::string& device_name, const std::string& table, bool quick) {
  ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(device_name));
  ASSIGN_OR_RETURN(std::shared_ptr<Device> device, Device::Open(name));
  if (table == "copies") return Copies(device, quick);
  if (table == "small") return MeasureSmallCopies(device, quick);
  return table == "steps" ? BehindSteps(device, quick) : Kernels(*device, quick);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  CLI::App app("Measures how close copies and the kernel come to the limits of a device");
  std::string device, table;
  bool quick = false;
  app.add_option("DEVICE", device, "cuda:0, or host, which simulates one")->required();
  app.add_option("TABLE", table, "what to measure")
      ->required()
      ->check(CLI::IsMember({"copies", "small", "steps", "kernels"}));
  app.add_flag("--quick", quick, "little of each, to try the program");
  CLI11_PARSE(app, argc, argv);
  const stoker::Status status = stoker::Run(device, table, quick);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().ToString());
  return status.ok() ? 0 : 1;
}
