// The tested devices: the host, and CUDA on a FakeCuda.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gpu/device.h"
#include "gpu/host_streams.h"
#include "tests/testing/fake_cuda/fake_cuda.h"

namespace stoker::testing {

enum class DeviceKind { kHost, kFakeCuda };
constexpr const char* NameOf(DeviceKind kind) {
  return kind == DeviceKind::kHost ? "Host" : "FakeCuda";
}

// A hook called before each piece of a stream's work.
class StreamHook {
 public:
  // A random delay up to `longest`.
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

// A device and its machine. The destructor fails the test if there were violations.
class TestDevice {
 public:
  explicit TestDevice(DeviceKind kind, std::chrono::microseconds longest_delay = {});
  ~TestDevice();
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  Device& operator*() const { return *device_; }
  Device* operator->() const { return device_.get(); }
  const std::shared_ptr<Device>& device() const { return device_; }
  StreamHook& hook() { return hook_; }
  FakeCuda* cuda() { return cuda_.get(); }  // null: the device is the host

 private:
  StreamHook hook_;
  std::unique_ptr<FakeCuda> cuda_;
  std::shared_ptr<Device> device_;
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
