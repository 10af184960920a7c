// SlowStream: a stream of a simulated device that is busy for as long as a test needs.
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include "gpu/backend/device.h"
#include "tests/testing/devices/devices.h"

namespace stoker::testing {

// A stream whose work does not end before its destruction, as a slow kernel or the copy of a
// checkpoint.
class SlowStream {
 public:
  SlowStream(std::shared_ptr<Device> device, StreamHook& hook)
      : device_(std::move(device)), hook_(hook), bytes_(device_, 4096) {
    stream_ = device_->MakeStream().value();
    memory_ = device_->Allocate(64).value();
    hook_.Hold();
    device_->Copy(memory_, bytes_.data(), 64, stream_).value();
    while (!hook_.Held()) std::this_thread::yield();
  }
  ~SlowStream() {
    hook_.Release();
    device_->Free(memory_);
    device_->Destroy(stream_);
  }
  SlowStream(const SlowStream&) = delete;
  SlowStream& operator=(const SlowStream&) = delete;

  // Makes later work of the stream wait for it.
  void HoldBack(DeviceStream stream) const {
    const DeviceEvent end = device_->MakeEvent().value();
    device_->Record(end, stream_).value();
    device_->Wait(stream, end).value();
    device_->Destroy(end);
  }

 private:
  const std::shared_ptr<Device> device_;
  StreamHook& hook_;
  const PinnedBytes bytes_;
  DeviceStream stream_;
  void* memory_ = nullptr;
};

}  // namespace stoker::testing
