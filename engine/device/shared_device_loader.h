// SharedDeviceLoader: a SharedLoader whose batches arrive on a device. What the Python package
// holds.
//
// Each iteration is a DeviceCursor. A ring of device memory and its stager belong to the
// SharedDeviceLoader: a cursor at the end of its epoch leaves them with the first batches of the
// next one on their way, and the next cursor finds them there. Cursors that run side by side have a
// ring each.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/column_spec.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "engine/device/device_loader.h"
#include "engine/device/staged_waits.h"
#include "engine/loader/batch_sequence.h"
#include "engine/loader/epoch_counter.h"
#include "engine/loader/shared_loader.h"
#include "engine/watching/stats.h"
#include "gpu/device_batch.h"
#include "gpu/stager.h"

namespace stoker {

class DeviceCursor;
class Staging;  // a ring and its stager

// Any thread. Its cursors keep it alive.
class SharedDeviceLoader : public std::enable_shared_from_this<SharedDeviceLoader> {
 public:
  // As SharedLoader::Open, and DeviceLoader::Open: pins the slots and allocates a ring.
  static Result<std::shared_ptr<SharedDeviceLoader>> Open(LoaderOptions options,
                                                          DeviceOptions device,
                                                          std::shared_ptr<EpochCounter> epochs);
  ~SharedDeviceLoader();

  // As SharedLoader::Iterate.
  std::unique_ptr<DeviceCursor> Iterate(std::optional<uint64_t> epoch = {}, bool repeat = false);

  // As SharedLoader::Stop. On return no thread of a stager runs any more.
  void Stop();

  SharedLoader& host() const { return *host_; }                            // where batches are made
  const std::vector<ColumnSpec>& columns() const { return plan_.device; }  // on the device
  LoaderStats Stats() const;       // the host's, but for the waits: for batches on the device
  StagerStats StageStats() const;  // of all rings together, past ones included

 private:
  friend class DeviceCursor;

  SharedDeviceLoader(std::shared_ptr<SharedLoader> host, DeviceOptions device, StagePlan plan);
  Result<std::shared_ptr<Staging>> MakeStaging();
  Result<std::shared_ptr<Staging>> Borrow(BatchName batch, bool repeat);
  void Return(std::shared_ptr<Staging> staging);

  const std::shared_ptr<SharedLoader> host_;
  const DeviceOptions device_;
  const StagePlan plan_;
  mutable std::mutex mutex_;                    // guards what follows
  std::shared_ptr<Staging> idle_;               // at most one: device memory is dear
  std::vector<std::shared_ptr<Staging>> busy_;  // borrowed
  StagerStats past_;                            // of rings that are gone
  StagedWaits::Totals past_waits_;              // and again
  bool stopped_ = false;
};

// One iteration. One thread at a time, the destructor included.
class DeviceCursor {
 public:
  ~DeviceCursor();
  DeviceCursor(const DeviceCursor&) = delete;
  DeviceCursor& operator=(const DeviceCursor&) = delete;

  // As Cursor::Next and Stager::Next.
  Result<DeviceBatch> Next(const Interrupt& interrupt = {});

  // As Cursor's. What is on its way to the device is not passed.
  Status Seek(BatchName batch);
  std::optional<BatchName> position() const;

 private:
  friend class SharedDeviceLoader;
  DeviceCursor(std::shared_ptr<SharedDeviceLoader> shared, std::optional<uint64_t> epoch,
               bool repeat);
  void LetGo();

  const std::shared_ptr<SharedDeviceLoader> shared_;
  const bool repeat_;
  std::optional<uint64_t> epoch_;
  uint64_t index_ = 0;
  uint64_t passed_ = 0;
  bool took_epoch_ = false;  // from the counter
  std::shared_ptr<Staging> staging_;
};

}  // namespace stoker
