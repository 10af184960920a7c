// DevicePinning: adapts a device to the Pinning interface.
#pragma once

#include <memory>
#include <utility>

#include "core/memory/pinning.h"
#include "gpu/backend/device.h"

namespace stoker {

class DevicePinning final : public Pinning {
 public:
  explicit DevicePinning(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  Status Pin(void* data, size_t bytes) override { return device_->Pin(data, bytes); }
  void Unpin(void* data) override { device_->Unpin(data); }
  Result<void*> Allocate(size_t bytes) override { return device_->AllocatePinned(bytes); }
  void Free(void* data) override { device_->FreePinned(data); }
  int numa_node() const override { return device_->numa_node(); }

 private:
  const std::shared_ptr<Device> device_;
};

}  // namespace stoker
