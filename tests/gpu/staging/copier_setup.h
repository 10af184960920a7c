// A copier with everything it needs, and a consumer that checks every byte.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "gpu/staging/device_copier.h"
#include "gpu/staging/piece_copier.h"
#include "tests/testing/devices/devices.h"
#include "tests/testing/devices/fake_host_batches.h"
#include "tests/testing/devices/hooked_device.h"

namespace stoker::testing {

struct CopierSetupOptions {
  HostBatchesOptions host;
  int buffers = 3;
  bool across_epochs = true;
  bool has_deferred_ops = false;  // deferred operations are applied to the first column, and give
                                  // the original values
  bool has_work = false;          // the last column has the operations of each row
  size_t piece_bytes = PieceCopier::kPieceBytes;
  bool timed = false;
  HookedDevice::Hook hook;
};

CopyPlan PlanOf(const CopierSetupOptions& options);

// Destroyed in this order: copier, ring, source, device.
struct CopierSetup {
  explicit CopierSetup(const DeviceUnderTest& under_test, CopierSetupOptions options = {});
  CopierSetup(std::shared_ptr<HookedDevice> on, CopierSetupOptions options);

  DeviceBatch Next() { return copier->Next().value(); }

  std::shared_ptr<HookedDevice> device;
  FakeHostBatches source;
  std::shared_ptr<DeviceRing> ring;
  std::unique_ptr<DeviceCopier> copier;
};

// A copy of a batch in pinned memory, to which copies are asynchronous.
struct ReadBatch {
  uint64_t epoch = 0, index = 0;
  std::unique_ptr<PinnedBytes> memory;
  std::vector<std::span<const uint8_t>> columns;  // in it
};

// A consumer's stream. Its calls are not counted or failed by a HookedDevice.
class StreamReader {
 public:
  explicit StreamReader(const std::shared_ptr<HookedDevice>& device);
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  DeviceStream stream() const { return stream_; }
  // Keeps the stream busy, longer with more pieces.
  void Work(int pieces);
  // Makes the stream wait for the batch and read it. `to` is valid once Await has returned.
  Status Issue(const DeviceBatch& batch, ReadBatch& to);
  void Read(const DeviceBatch& batch, ReadBatch& to);  // without waiting for the batch
  void Await();

 private:
  const std::shared_ptr<HookedDevice> kept_;
  Device& device_;  // the device inside a HookedDevice
  DeviceStream stream_;
  DeviceEvent event_;
  uint8_t* scratch_;  // on the device
  PinnedBytes scratch_source_;
};

// Waits until `condition` holds. If it never does, ctest ends the test.
template <typename Condition>
void Await(const Condition& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// Expects that all columns have the bytes of the named batch.
void ExpectRight(const ReadBatch& batch);
// Waits for the batch, reads it, and expects this epoch and index.
void ExpectRight(StreamReader& reader, const DeviceBatch& batch, uint64_t epoch, uint64_t index);

}  // namespace stoker::testing
