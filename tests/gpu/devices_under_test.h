// The implementations of device.h; the stager is tested on each of them.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gpu/device.h"

namespace stoker::testing {

struct DeviceUnderTest {
  std::string name;  // letters only
  // Streams of the device are delayed at random before each piece of their work.
  std::function<std::shared_ptr<Device>()> make;

  friend std::ostream& operator<<(std::ostream& out, const DeviceUnderTest& device) {
    return out << device.name;
  }
};

std::vector<DeviceUnderTest> DevicesUnderTest();

}  // namespace stoker::testing
