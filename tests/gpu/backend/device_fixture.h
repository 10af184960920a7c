// DeviceTest makes the device on which a test checks what gpu/backend/device.h documents.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "gpu/backend/device.h"
#include "tests/testing/devices/devices.h"

namespace stoker::testing {

// A device, and the longest delay of its streams in microseconds.
class DeviceTest : public ::testing::TestWithParam<std::tuple<DeviceUnderTest, int>> {
 protected:
  ~DeviceTest() override { hook_.Release(); }

  DeviceStream MakeStream() { return device_->MakeStream().value(); }
  DeviceEvent MakeEvent() { return device_->MakeEvent().value(); }
  uint8_t* Allocate(size_t bytes) {
    return static_cast<uint8_t*>(device_->Allocate(bytes).value());
  }

  void AwaitHeld() {
    while (!hook_.Held()) std::this_thread::yield();
  }

  StreamHook hook_{std::chrono::microseconds(std::get<1>(GetParam()))};
  const std::shared_ptr<Device> device_ = std::get<0>(GetParam()).make(hook_.AsBeforeWork());
};

inline auto WithAndWithoutDelays() {
  return ::testing::Combine(::testing::ValuesIn(SimulatedDevices()), ::testing::Values(0, 300));
}

inline std::string NameOfDeviceAndDelay(
    const ::testing::TestParamInfo<std::tuple<DeviceUnderTest, int>>& info) {
  const auto& [device, longest_delay] = info.param;
  return device.name + (longest_delay == 0 ? "" : "Delayed");
}

}  // namespace stoker::testing
