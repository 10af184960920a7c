// Measures the kernels that decode crops (gpu/crops), and the one that finishes their batch, each
// by itself. The crops are those of a loader's batch, and are on the device already.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "bindings/cli/bench/device_scratch.h"
#include "core/result/result.h"
#include "gpu/backend/device.h"
#include "io/source/source.h"

namespace stoker {

struct CropKernels {
  double crops = 0;       // of a batch, on average; workers have decoded its other rows
  double crop_bytes = 0;  // of a crop, on average
  double host_ns = 0;     // a worker's CPU time for a row: to verify, plan and write its crop
  // The times of a whole batch. A kernel that no crop needs has no times. The device is idle when a
  // kernel is launched, so that its time has the latency of starting it, some µs.
  std::optional<WorkTimes> unpack, entropy, resample;
  WorkTimes finish;
  WorkTimes all;  // these kernels, one after the other: three or four are started
};

// Takes crops of 224 × 224 pixels, as RandomResizedCrop draws them, of three batches of the source,
// which has packed JPEGs, or plain ones with a crop index; a source of few samples is repeated.
// Each kernel is run `rounds` times, on these batches in turn, so that a cache no longer has a
// batch's bytes when it is next (256 crops of 80 kB fit in the L2 cache of an H100, of 50 MB).
// DataLoss if the pixels are not those of the CPU, before or after.
Result<CropKernels> MeasureCropKernels(const std::shared_ptr<Device>& device,
                                       std::shared_ptr<const SampleSource> source,
                                       uint32_t batch_size, int rounds);

}  // namespace stoker
