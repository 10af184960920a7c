// The devices that gpu/device.h is tested with.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <tuple>

#include "gpu/device.h"
#include "tests/testing/devices.h"

namespace stoker::testing {

// With and without delays on streams.
class DeviceTest : public ::testing::TestWithParam<std::tuple<DeviceKind, int>> {
 protected:
  DeviceStream MakeStream() { return device_->MakeStream().value(); }
  DeviceEvent MakeEvent() { return device_->MakeEvent().value(); }
  uint8_t* Allocate(size_t bytes) {
    return static_cast<uint8_t*>(device_->Allocate(bytes).value());
  }

  void AwaitHeld() {
    while (!device_.hook().Held()) std::this_thread::yield();
  }

  TestDevice device_{std::get<0>(GetParam()), std::chrono::microseconds(std::get<1>(GetParam()))};
};

inline auto DevicesUnderTest() {
  return ::testing::Combine(::testing::Values(DeviceKind::kHost, DeviceKind::kFakeCuda),
                            ::testing::Values(0, 300));
}

inline std::string NameOfDeviceUnderTest(
    const ::testing::TestParamInfo<std::tuple<DeviceKind, int>>& info) {
  return std::string(NameOf(std::get<0>(info.param))) +
         (std::get<1>(info.param) == 0 ? "" : "Delayed");
}

}  // namespace stoker::testing
