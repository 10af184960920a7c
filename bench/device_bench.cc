// Measures how close copies and kernels come to the limits of a device:
//
//   device_bench DEVICE copies|small|steps|kernels|crops|record [--quick]
//
// Times are the device's, but for `record`. Each printed line is a JSON object, with rates in GB/s:
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
//
// record   calls that record an event, on a stream and on all of the device
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
#include "bench/device/json.h"
#include "bench/device/recording.h"
#include "bench/device/small_copies.h"
#include "bench/device/staged_copies.h"
#include "bindings/cli/open_samples.h"
#include "core/result/try.h"

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

// To two decimals.
std::string Gigabytes(double bytes) { return JsonNumber(bytes / kGiga, 2); }

Status PrintCopies(const std::shared_ptr<Device>& device, bool quick) {
  for (const uint32_t mib : {8, 64, 256}) {
    if (quick && mib > 8) break;
    ASSIGN_OR_RETURN(const CopyRates rates, MeasureCopies(device, mib, quick ? 1 : 3,
                                                          /*batches=*/quick ? 4 : 24));
    fmt::print(
        "{{\"mib\": {}, \"pageable\": {}, \"registered\": {}, \"registered_huge\": {}, "
        "\"host_alloc\": {}, \"batches\": {}, \"batches_32mib\": {}, \"batches_whole\": {}, "
        "\"pinned_bytes\": {}, \"pinning_s\": {}, \"memory_warning\": {}}}\n",
        mib, Gigabytes(rates.pageable), Gigabytes(rates.registered),
        Gigabytes(rates.registered_huge), Gigabytes(rates.host_alloc), Gigabytes(rates.batches),
        Gigabytes(rates.batches_32mib), Gigabytes(rates.batches_whole), rates.pinned_bytes,
        JsonNumber(rates.pinning_s, 3), JsonText(rates.memory_warning));
  }
  return {};
}

Status PrintSteps(const std::shared_ptr<Device>& device, bool quick) {
  for (uint32_t mib = 8; mib <= (quick ? 8 : 128); mib *= 4) {
    ASSIGN_OR_RETURN(const CopiesBehindSteps copies,
                     MeasureBehindSteps(device, mib, quick ? 10 : 100));
    fmt::print(
        "{{\"mib\": {}, \"step_ms\": {}, \"idle_ms\": {}, \"copy_ms\": {}, "
        "\"hidden_at_least\": {}}}\n",
        mib, JsonNumber(copies.step_ms, 3), JsonNumber(copies.idle_ms, 3),
        JsonNumber(copies.copy_ms, 3), JsonNumber(copies.hidden_at_least, 4));
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
            "{{\"dtype\": \"{}\", \"layout\": \"{}\", \"operations\": \"{}\", \"us\": {}, "
            "\"kernel\": {}, \"copy\": {}, \"of_copy\": {}}}\n",
            NameOf(dtype), NameOf(layout), ops.name,
            JsonNumber(static_cast<double>(rates.kernel_ns) * 1e-3, 1),
            JsonNumber(rates.kernel / kGiga, 1), JsonNumber(rates.copy / kGiga, 1),
            JsonNumber(rates.kernel / rates.copy, 3));
      }
    }
  }
  return {};
}

std::string Microseconds(const char* name, const std::optional<WorkTimes>& times) {
  if (!times) return fmt::format("\"{0}_us\": null, \"{0}_min_us\": null", name);
  return fmt::format("\"{0}_us\": {1}, \"{0}_min_us\": {2}", name,
                     JsonNumber(static_cast<double>(times->median_ns) * 1e-3, 1),
                     JsonNumber(static_cast<double>(times->least_ns) * 1e-3, 1));
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
      fmt::print(
          "{{\"files\": \"{}\", \"batch\": {}, \"crops\": {}, \"copied_bytes\": {}, "
          "\"host_us\": {}, {}, {}, {}, {}, {}, \"crops_per_second\": {}}}\n",
          files, batch_size, JsonNumber(kernels.crops, 1), JsonNumber(kernels.crop_bytes, 0),
          JsonNumber(kernels.host_ns * 1e-3, 2), Microseconds("unpack", kernels.unpack),
          Microseconds("entropy", kernels.entropy), Microseconds("resample", kernels.resample),
          Microseconds("finish", kernels.finish), Microseconds("all", kernels.all),
          JsonNumber(kernels.crops * 1e9 / static_cast<double>(kernels.all.median_ns), 0));
    }
  }
  return {};
}

Status PrintRecords(Device& device, bool quick) {
  for (const bool busy : {false, true}) {
    ASSIGN_OR_RETURN(const RecordTimes times, MeasureRecords(device, busy, quick ? 50 : 1000));
    fmt::print(
        "{{\"device_is\": \"{}\", \"calls\": {}, \"record_us\": {}, \"record_most_us\": {}, "
        "\"record_all_us\": {}, \"record_all_most_us\": {}}}\n",
        busy ? "busy" : "idle", times.record_all.calls, JsonNumber(times.record.median_us, 2),
        JsonNumber(times.record.most_us, 2), JsonNumber(times.record_all.median_us, 2),
        JsonNumber(times.record_all.most_us, 2));
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
  if (given.table == "record") return PrintRecords(*device, given.quick);
  return PrintKernels(*device, given.quick);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a killed run has its complete lines
  CLI::App app("Measures how close copies and kernels come to the limits of a device");
  stoker::Arguments given;
  app.add_option("DEVICE", given.device, "cuda:0, or host, which simulates one")->required();
  app.add_option("TABLE", given.table, "what to measure")
      ->required()
      ->check(CLI::IsMember({"copies", "small", "steps", "kernels", "crops", "record"}));
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
