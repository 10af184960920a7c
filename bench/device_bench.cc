// Measures how close copies and kernels come to the limits of a device:
//
//   device_bench DEVICE copies|small|steps|kernels|crops [--quick]
//
// All times are measured on the device. Each printed line is a JSON object, with rates in GB/s:
//
// copies   of 8 to 256 MiB: bare copies from each kind of host memory, and those of batches, in
//          pieces of 8 MiB and of 32 MiB, and whole
//
// small    copies of 4 KiB while large ones are made, which are whole or in pieces
//          (device/small_copies.h)
//
// steps    copies of batches during a step that takes longer; they are hidden then
//
// kernels  the kernel that finishes batches, of each type, layout and deferred operation, and a
//          copy on the device of as many bytes
//
// crops    the kernels that decode crops, of PACKED, which `stoker pack` made, and of the
//          photographs in a folder with a crop index (--photos, --index)
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/crop_kernels.h"
#include "bench/device/finish_kernel.h"
#include "bench/device/small_copies.h"
#include "bench/device/staged_copies.h"
#include "bindings/cli/open_samples.h"
#include "core/try.h"

namespace stoker {
namespace {

struct Arguments {
  std::string device, table;
  std::string packed, photos, index;  // of `crops`
  uint32_t batch_size = 0;
  int rounds = 0;
  bool quick = false;
};

constexpr double kGiga = 1e9;

// A text that needs no escapes but those of quotes and backslashes.
std::string JsonOf(const std::optional<std::string>& text) {
  if (!text) return "null";
  std::string json = "\"";
  for (const char c : *text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

Status PrintCopies(const std::shared_ptr<Device>& device, bool quick) {
  for (const uint32_t mib : {8, 64, 256}) {
    if (quick && mib > 8) break;
    ASSIGN_OR_RETURN(const CopyRates rates, MeasureCopies(device, mib, quick ? 1 : 3,
                                                          /*batches=*/quick ? 4 : 24));
    fmt::print(
        "{{\"mib\": {}, \"pageable\": {:.2f}, \"registered\": {:.2f}, \"registered_huge\": {:.2f}, "
        "\"host_alloc\": {:.2f}, \"batches\": {:.2f}, \"batches_32mib\": {:.2f}, "
        "\"batches_whole\": {:.2f}, \"pinned_bytes\": {}, \"pinning_s\": {:.3f}, "
        "\"memory_warning\": {}}}\n",
        mib, rates.pageable / kGiga, rates.registered / kGiga, rates.registered_huge / kGiga,
        rates.host_alloc / kGiga, rates.batches / kGiga, rates.batches_32mib / kGiga,
        rates.batches_whole / kGiga, rates.pinned_bytes, rates.pinning_s,
        JsonOf(rates.memory_warning));
    std::fflush(stdout);
  }
  return {};
}

Status PrintSteps(const std::shared_ptr<Device>& device, bool quick) {
  for (uint32_t mib = 8; mib <= (quick ? 8 : 128); mib *= 4) {
    ASSIGN_OR_RETURN(const CopiesBehindSteps copies,
                     MeasureBehindSteps(device, mib, quick ? 10 : 100));
    fmt::print(
        "{{\"mib\": {}, \"step_ms\": {:.3f}, \"idle_ms\": {:.3f}, \"copy_ms\": {:.3f}, "
        "\"hidden_at_least\": {:.4f}}}\n",
        mib, copies.step_ms, copies.idle_ms, copies.copy_ms, copies.hidden_at_least);
    std::fflush(stdout);
  }
  return {};
}

Status PrintKernels(Device& device, bool quick) {
  DeferredOpsJob job{.rows = quick ? 2 : 1024, .height = 224, .width = 224};
  std::fill_n(job.scale, 3, 1.0F / 255);
  ASSIGN_OR_RETURN(const std::unique_ptr<FinishKernel> kernel, FinishKernel::Make(device, job));
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kU8}) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      for (const FinishingOps& ops : kFinishingOps) {
        if (dtype == DType::kU8 && ops.noisy) continue;  // there is none for bytes
        job.dtype = dtype;
        job.layout = layout;
        ASSIGN_OR_RETURN(const FinishRates rates, kernel->Measure(job, ops));
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

std::string Microseconds(const char* name, const std::optional<WorkTimes>& times) {
  if (!times) return fmt::format("\"{0}_us\": null, \"{0}_min_us\": null", name);
  return fmt::format("\"{0}_us\": {1:.1f}, \"{0}_min_us\": {2:.1f}", name,
                     static_cast<double>(times->median_ns) * 1e-3,
                     static_cast<double>(times->least_ns) * 1e-3);
}

Status PrintCrops(const std::shared_ptr<Device>& device, const Arguments& given) {
  std::vector<std::pair<const char*, std::shared_ptr<const SampleSource>>> sources;
  if (!given.packed.empty()) {
    ASSIGN_OR_RETURN(sources.emplace_back("packed", nullptr).second,
                     cli::OpenSamples(given.packed));
  }
  if (!given.photos.empty()) {
    ASSIGN_OR_RETURN(sources.emplace_back("indexed", nullptr).second,
                     cli::OpenSamples(given.photos, given.index));
  }
  std::vector<uint32_t> sizes = {256, 1024};
  if (given.quick) sizes = {8};
  if (given.batch_size != 0) sizes = {given.batch_size};
  const int rounds = given.rounds != 0 ? given.rounds : given.quick ? 3 : 50;
  for (const uint32_t batch_size : sizes) {
    for (const auto& [files, source] : sources) {
      ASSIGN_OR_RETURN(const CropKernels kernels,
                       MeasureCropKernels(device, source, batch_size, rounds));
      const double crops = kernels.crops;
      fmt::print(
          "{{\"files\": \"{}\", \"batch\": {}, \"crops\": {:.1f}, \"copied_bytes\": {:.0f}, "
          "\"host_us\": {:.2f}, {}, {}, {}, {}, {}, \"crops_per_second\": {:.0f}}}\n",
          files, batch_size, crops, kernels.crop_bytes,
          kernels.host_ns * 1e-3, Microseconds("unpack", kernels.unpack),
          Microseconds("entropy", kernels.entropy), Microseconds("resample", kernels.resample),
          Microseconds("finish", kernels.finish), Microseconds("all", kernels.all),
          crops * 1e9 / static_cast<double>(kernels.all.median_ns));
      std::fflush(stdout);
    }
  }
  return {};
}

Status Run(const Arguments& given) {
  ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(given.device));
  ASSIGN_OR_RETURN(std::shared_ptr<Device> device, Device::Open(name));
  if (given.table == "copies") return PrintCopies(device, given.quick);
  if (given.table == "small") return MeasureSmallCopies(device, given.quick);
  if (given.table == "steps") return PrintSteps(device, given.quick);
  if (given.table == "crops") return PrintCrops(device, given);
  return PrintKernels(*device, given.quick);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  CLI::App app("Measures how close copies and kernels come to the limits of a device");
  stoker::Arguments given;
  app.add_option("DEVICE", given.device, "cuda:0, or host, which simulates one")->required();
  app.add_option("TABLE", given.table, "what to measure")
      ->required()
      ->check(CLI::IsMember({"copies", "small", "steps", "kernels", "crops"}));
  app.add_option("PACKED", given.packed, "crops: what `stoker pack` made");
  CLI::Option* photos = app.add_option("--photos", given.photos, "crops: a folder of photographs");
  CLI::Option* index = app.add_option("--index", given.index, "crops: its crop index");
  photos->needs(index);
  index->needs(photos);
  app.add_option("--batch", given.batch_size, "crops: rows of a batch [256, then 1024]");
  app.add_option("--rounds", given.rounds, "crops: how often each kernel is timed [50]");
  app.add_flag("--quick", given.quick, "little of each, to try the program");
  CLI11_PARSE(app, argc, argv);
  if (given.table == "crops" && given.packed.empty() && given.photos.empty()) {
    fmt::print(stderr, "crops needs PACKED, or --photos and --index\n");
    return 2;
  }
  const stoker::Status status = stoker::Run(given);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().ToString());
  return status.ok() ? 0 : 1;
}
