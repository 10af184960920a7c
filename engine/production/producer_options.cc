#include "engine/production/producer_options.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "engine/production/check_options.h"
#include "gpu/staging/device_copier.h"
#include "transforms/decode/decoding.h"

namespace stoker {

namespace {

// Null without a source, which CheckOptions refuses.
Result<std::shared_ptr<SampleCache>> OpenCache(const LoaderOptions& options) {
  if (!options.cache || options.source == nullptr) return std::shared_ptr<SampleCache>();
  uint64_t working_memory = DefaultMemory();
  if (options.runtime != nullptr) {
    const MemoryBudget& budget = options.runtime->budget();
    working_memory = budget.limit() - std::min(budget.limit(), budget.used());
  }
  const auto ranks = static_cast<uint64_t>(RanksHere());
  constexpr uint64_t kMost = uint64_t{1} << 40;  // of a rank; more than any machine has
  return SampleCache::Open(options.cache, *options.source, ranks * std::min(working_memory, kMost));
}

// Refuses loaders whose options rule out decoding on a device, and those that drop rows of several
// devices. (Plan::Compile checks transforms; the formats of files are known when they are read.)
Status CheckDecodes(const LoaderOptions& options) {
  const auto refuse = [](const std::string& cause) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "decode is \"device\", and " + cause,
                 .advice = kLetWorkersDecode};
  };
  const uint64_t crop_bytes = options.to_device->crop_bytes;
  if (crop_bytes == 0 || crop_bytes > decode::kMaxCropBytes) {
    return refuse("crop_bytes is " + std::to_string(crop_bytes) + "; it must be between 1 and " +
                  std::to_string(decode::kMaxCropBytes));
  }
  // A dropped row would move others to another device's part, and their crops with them.
  if (options.to_device->devices.size() > 1 && options.on_bad.Has(OnBad::kDrop)) {
    return refuse("on_bad is \"" + options.on_bad.ToString() +
                  "\": with several devices no row may be dropped");
  }
  if (options.dtype == DType::kU16) return refuse("dtype is uint16");
  if (options.channels != Channels::kRgb) {
    return refuse(std::string("channels is \"") + NameOf(options.channels) + "\"");
  }
  if (options.source != nullptr && options.source->in_memory()) {
    return refuse("the samples of " + options.source->Describe() + " are in memory, not encoded");
  }
  if (!options.views.empty()) return refuse("a device does not make several views of an image");
  if (options.map != nullptr) {
    return refuse("the function " + options.map->Describe() + " needs the images on the host");
  }
  return {};
}

// A crop of RandomResizedCrop(224) of a photograph of 500 × 375 takes 75 KB, and its samples about
// three times as many; there is room for four.
CropRoom CropRoomOf(const LoaderOptions& options) {
  constexpr uint64_t kFewestRows = 16;  // of a device, so that few have room for large crops
  constexpr uint64_t kSamples = 4;      // for each byte
  if (!options.to_device->decodes) return {};
  const size_t devices = options.to_device->devices.size();
  const uint64_t rows = std::max<uint64_t>(options.batch_size / devices, kFewestRows);
  const uint64_t bytes = rows * options.to_device->crop_bytes;
  return {.bytes = bytes,
          .samples = kSamples * bytes / decode::kGroupSamples,
          .regions = static_cast<uint32_t>(devices)};
}

Status CheckDevices(const LoaderOptions& options) {
  const std::vector<std::shared_ptr<Device>>& devices = options.to_device->devices;
  const auto refuse = [](std::string cause, std::string advice) -> Status {
    return Error{
        .code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
  };
  if (devices.empty()) return refuse("devices is empty", "Give one device or more");
  if (std::ranges::count(devices, nullptr) != 0) {
    return refuse("device is null", "Open one with Device::Open");
  }
  const DeviceName first = devices[0]->name();
  for (const std::shared_ptr<Device>& device : devices) {
    if (device->name().kind == first.kind) continue;
    return refuse(
        "batches cannot be split among " + first.ToString() + " and " + device->name().ToString(),
        "Give devices of one kind");
  }
  if (options.batch_size % devices.size() == 0) return {};
  return refuse("a batch of " + std::to_string(options.batch_size) +
                    " rows cannot be split among " + std::to_string(devices.size()) +
                    " devices in equal parts",
                "Give a multiple of " + std::to_string(devices.size()));
}

}  // namespace

Result<ProducerOptions> ProducerOptionsOf(const LoaderOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<SampleCache> cache, OpenCache(options));
  ASSIGN_OR_RETURN(std::shared_ptr<BadSampleLog> bad,
                   BadSampleLog::Open(options.bad_samples_file, options.max_bad_fraction));
  if (!options.to_device) {
    return ProducerOptions{.pinned_for = options.pinned_for,
                           .lent_batches = options.lent_batches,
                           .lent = std::make_shared<LentAccount>(options.lent_batches),
                           .bad = std::move(bad),
                           .cache = std::move(cache)};
  }
  const DeviceOptions& to = *options.to_device;
  TRY(CheckDevices(options));
  TRY(DeviceCopier::CheckBuffers(to.buffers));
  if (to.decodes) TRY(CheckDecodes(options));
  // One slot for each copy in flight, and one for the next batch.
  const int staged = to.buffers + 1;
  // Only the program's own function can hold more.
  const bool limited = options.map != nullptr && options.lent_batches != 0;
  return ProducerOptions{
      .pinned_for = to.devices[0],
      .lent_batches = staged,
      .lent = std::make_shared<LentAccount>(limited ? options.lent_batches + staged : 0),
      .bad = std::move(bad),
      .cache = std::move(cache),
      .one_slab = true,
      // The program's function gets finished images.
      .defer_to_device = !options.transforms.empty() && options.map == nullptr &&
                         (options.source == nullptr || !HasFurtherImages(*options.source)) &&
                         options.channels == Channels::kRgb && options.dtype != DType::kU16 &&
                         (options.dtype != DType::kU8 || options.mix.has_value() || to.decodes),
      .crops = CropRoomOf(options)};
}

}  // namespace stoker
