// The devices that tests run on: the host, CUDA on a FakeCuda, and CUDA if there is a GPU.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "gpu/backend/device.h"
#include "gpu/backend/host_streams.h"
#include "tests/testing/devices/fake_cuda/fake_cuda.h"

namespace stoker::testing {

struct DeviceUnderTest {
  std::string name;  // letters only
  // Makes a device whose streams call the hook before each piece of their work; a GPU's streams do
  // not. Violations on a FakeCuda, and memory that is still allocated there, fail the test when the
  // device ends.
  std::function<std::shared_ptr<Device>(BeforeWork)> make;

  // Makes a device whose streams are delayed at random, some of them more than others; a GPU's
  // streams, which have no hook, are not delayed.
  std::shared_ptr<Device> MakeDelayed() const;

  friend std::ostream& operator<<(std::ostream& out, const DeviceUnderTest& device) {
    return out << device.name;
  }
};

std::vector<DeviceUnderTest> SimulatedDevices();  // those whose streams call the hook
std::vector<DeviceUnderTest> DevicesUnderTest();

// A hook called before each piece of a stream's work.
class StreamHook {
 public:
  // Delays the stream at random, up to `longest`.
  explicit StreamHook(std::chrono::microseconds longest = {}, uint64_t seed = 1);

  BeforeWork AsBeforeWork() const;  // may be called after this object was destroyed

  // Holds the next piece of work of any stream (a copy, a kernel, a record or a wait) until
  // Release; other streams continue.
  void Hold();
  bool Held() const;  // a stream is held
  void Release();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// Whole pages of host memory, pinned during the object's lifetime.
class PinnedBytes {
 public:
  PinnedBytes(std::shared_ptr<Device> device, size_t size);
  ~PinnedBytes();
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<uint8_t> bytes() const { return {data_, size_}; }

 private:
  std::shared_ptr<Device> device_;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace stoker::testing
