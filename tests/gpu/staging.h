// A stager with all that it needs, and a consumer who checks every byte.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "gpu/stager.h"
#include "tests/gpu/devices_under_test.h"
#include "tests/testing/devices.h"
#include "tests/testing/fake_host_batches.h"
#include "tests/testing/hooked_device.h"

namespace stoker::testing {

struct StagingOptions {
  HostBatchesOptions host;
  int buffers = 3;
  bool across_epochs = true;
  bool finishes = false;  // the first column is finished, to what it was before
  bool has_work = false;  // the last column says so for each row
  HookedDevice::Hook hook;
};

StagePlan PlanOf(const StagingOptions& options);

// Ends in this order: stager, ring, source, device.
struct Staging {
  explicit Staging(const DeviceUnderTest& under_test, StagingOptions options = {});
  Staging(std::shared_ptr<HookedDevice> on, StagingOptions options);

  DeviceBatch Next() { return stager->Next().value(); }

  std::shared_ptr<HookedDevice> device;
  FakeHostBatches source;
  std::shared_ptr<DeviceRing> ring;
  std::unique_ptr<Stager> stager;
};

// What was read of a batch, into pinned memory: else a copy to it would be waited for.
struct ReadBatch {
  uint64_t epoch = 0, index = 0;
  std::unique_ptr<PinnedBytes> memory;
  std::vector<std::span<const uint8_t>> columns;  // in it
};

// A consumer's stream. Its own calls are not those that a HookedDevice counts and fails.
class StreamReader {
 public:
  explicit StreamReader(const std::shared_ptr<HookedDevice>& device);
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  DeviceStream stream() const { return stream_; }
  // The stream is busy for a while, longer with more.
  void Work(int pieces);
  // The stream waits for the batch, and reads it. `to` is there once Await has returned.
  Status Issue(const DeviceBatch& batch, ReadBatch& to);
  void Read(const DeviceBatch& batch, ReadBatch& to);  // without waiting for the batch
  void Await();

 private:
  const std::shared_ptr<HookedDevice> kept_;
  Device& device_;  // inside of it
  DeviceStream stream_;
  DeviceEvent event_;
  uint8_t* scratch_;  // on the device
  PinnedBytes scratch_source_;
};

// Waits until `condition` holds. A test that waits for what never comes is ended by ctest.
template <typename Condition>
void Await(const Condition& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// All columns are those of the batch that it says it is.
void ExpectRight(const ReadBatch& batch);
// Waits for the batch, reads it, and checks that it is this one.
void ExpectRight(StreamReader& reader, const DeviceBatch& batch, uint64_t epoch, uint64_t index);

}  // namespace stoker::testing
