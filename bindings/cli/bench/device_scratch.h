// DeviceScratch: the device resources of a measurement: a stream, two timed events, and memory on
// both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/memory/mapping.h"
#include "core/result/result.h"
#include "gpu/backend/device.h"

namespace stoker {

// Host memory to copy from: pages that are not pinned; pages, small or huge, that are pinned
// afterwards, as a loader's slots are; or memory that the driver has allocated and pinned.
enum class HostMemory : uint8_t { kPageable, kRegistered, kRegisteredHuge, kAllocated };

// Times of repeated work, in nanoseconds, at least 1.
struct WorkTimes {
  uint64_t median_ns = 0, least_ns = 0;
};

class DeviceScratch {
 public:
  static constexpr int kRepeats = 20;

  explicit DeviceScratch(Device& device) : device_(device) {}
  ~DeviceScratch();
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;

  Status Prepare();  // first

  DeviceStream stream() const { return stream_; }
  Status Synchronize();  // waits for the stream

  // Memory on the device.
  Result<void*> Allocate(size_t bytes);
  // Memory on the host with random bytes; once.
  Result<void*> Host(size_t bytes, HostMemory memory);
  // Memory on the device with these bytes.
  Result<void*> Upload(const void* from, size_t bytes);

  // Returns the times that `issue(stream)` takes on the device, without the first run's.
  Result<WorkTimes> Time(const std::function<Status(DeviceStream)>& issue, int repeats = kRepeats);

 private:
  Device& device_;
  DeviceStream stream_;
  DeviceEvent begun_, done_;
  std::vector<void*> memory_;
  Mapping mapped_;
  bool pinned_ = false;
  void* allocated_ = nullptr;
};

}  // namespace stoker
