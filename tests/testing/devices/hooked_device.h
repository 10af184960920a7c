// HookedDevice: wraps a device, counts calls and live objects, and lets a test intercept calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/backend/device.h"

namespace stoker::testing {

// The calls that may fail.
enum class DeviceCall : uint8_t {
  kPin,
  kAllocate,
  kMakeStream,
  kMakeEvent,
  kRecord,
  kWait,
  kDone,
  kSynchronize,
  kSynchronizeAll,
  kRecordAll,
  kElapsed,
  kCopy,
  kApplyDeferred,
  kDecodeCrops,
  kOccupy,
};
inline constexpr size_t kDeviceCalls = 15;

class HookedDevice final : public Device {
 public:
  // Called before each such call, on its thread; may wait. Its error replaces the call.
  using Hook = std::function<Status(DeviceCall)>;
  explicit HookedDevice(std::shared_ptr<Device> inner, Hook hook = {});

  int count(DeviceCall call) const { return counts_[static_cast<size_t>(call)].load(); }
  // The copies that were made, in order.
  struct Copied {
    const void* to = nullptr;
    const void* from = nullptr;
    size_t bytes = 0;
    DeviceStream stream{};
    friend bool operator==(const Copied&, const Copied&) = default;
  };
  std::vector<Copied> copies() const;
  // Allocations, streams and events that were not released.
  int alive() const { return alive_.load(); }
  const std::shared_ptr<Device>& inner() const { return inner_; }

  DeviceName name() const override { return inner_->name(); }
  int numa_node() const override { return inner_->numa_node(); }
  Status Pin(void* data, size_t bytes) override;
  void Unpin(void* data) override { inner_->Unpin(data); }
  Result<void*> AllocatePinned(size_t bytes) override;  // counts as kPin
  void FreePinned(void* data) override { inner_->FreePinned(data); }
  Result<void*> Allocate(size_t bytes) override;
  void Free(void* data) override;
  Result<DeviceStream> MakeStream(StreamPriority priority) override;
  void Destroy(DeviceStream stream) override;
  Result<DeviceEvent> MakeEvent(bool timed) override;
  void Destroy(DeviceEvent event) override;
  Status Record(DeviceEvent event, DeviceStream stream) override;
  Status RecordAll(DeviceEvent event) override;
  Result<bool> IsCapturing(DeviceStream stream) override { return inner_->IsCapturing(stream); }
  Status Wait(DeviceStream stream, DeviceEvent event) override;
  Result<bool> IsDone(DeviceEvent event) override;
  Status Synchronize(DeviceEvent event) override;
  Status SynchronizeAll() override;
  Result<uint64_t> Elapsed(DeviceEvent begin, DeviceEvent end) override;
  Status Copy(void* to, const void* from, size_t bytes, DeviceStream stream) override;
  Status ApplyDeferred(const DeferredOpsJob& job, DeviceStream stream) override;
  Status DecodeCrops(const decode::CropBatch& batch, DeviceStream stream) override;
  Status Occupy(uint64_t nanoseconds, DeviceStream stream) override;

 private:
  Status Before(DeviceCall call);

  const std::shared_ptr<Device> inner_;
  const Hook hook_;
  std::array<std::atomic<int>, kDeviceCalls> counts_{};
  std::atomic<int> alive_{0};
  mutable std::mutex copies_mutex_;
  std::vector<Copied> copies_;
};

}  // namespace stoker::testing
