// DeviceLoader: a loader whose batches arrive on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/column_spec.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "engine/loader/options.h"
#include "engine/watching/stats.h"
#include "gpu/device_batch.h"
#include "gpu/stager.h"

namespace stoker {

struct DeviceOptions {
  std::shared_ptr<Device> device;
  int buffers = 4;     // batches on the device: those in use, and those copied ahead; 2 to 64
  bool timed = false;  // StagerStats::copy_ns; for measuring
};

// The same batches as Loader's, in the same order, with the same values. Where they are not bytes,
// or are mixed, what a kernel can do (flip last, normalise, convert, erase, mix) is left to it, so
// that a quarter of the bytes of float32 cross the bus.
//
//   auto device = Device::Open({DeviceName::Kind::kCuda, 0}).value();
//   auto loader = DeviceLoader::Open(options, {.device = device}).value();
//   while (DeviceBatch batch = loader->Next().value()) {
//     batch.WaitOn({stream}).value();
//     Train(stream, batch.images(), batch.labels());
//   }
//
// One thread at a time calls Next and Seek; Stop and Stats may be called from any. Batches outlive
// the loader.
class DeviceLoader {
 public:
  // As Loader::Open. Pins the slots and allocates the ring. Of `options`, `device`,
  // `finish_on_device` and the limit of lent batches are set here.
  static Result<std::unique_ptr<DeviceLoader>> Open(LoaderOptions options, DeviceOptions device);
  ~DeviceLoader();

  // As Loader::Next and Stager::Next.
  Result<DeviceBatch> Next(const Interrupt& interrupt = {});
  Status Seek(uint64_t epoch, uint64_t index = 0);
  void Stop();

  LoaderStats Stats() const;
  StagerStats StageStats() const;
  uint64_t batches_per_epoch() const;
  const std::vector<ColumnSpec>& columns() const;  // on the device

 private:
  class Impl;
  explicit DeviceLoader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
