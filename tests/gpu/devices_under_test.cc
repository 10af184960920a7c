#include "tests/gpu/devices_under_test.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "gpu/open_device.h"
#include "tests/testing/fake_cuda/fake_cuda.h"
#include "tests/testing/random.h"

namespace stoker::testing {

namespace {

// On a stream's thread. Every third stream is slow, every third hurries.
void Dawdle() {
  static std::atomic<uint32_t> streams{0};
  thread_local const uint32_t stream = streams++;
  thread_local Random random(stream);
  if (stream % 3 == 1 || !random.OneIn(stream % 3 == 2 ? 4 : 16)) return;
  if (random.OneIn(2)) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(random.Between(1, 200)));
}

// A device, and the made-up CUDA that it belongs to: what was done wrong fails the test.
struct OnFakeCuda {
  FakeCuda cuda{FakeMachine{.before_work = Dawdle}};
  std::shared_ptr<Device> device = OpenFakeDevice().value();

  OnFakeCuda() = default;
  OnFakeCuda(const OnFakeCuda&) = delete;
  OnFakeCuda& operator=(const OnFakeCuda&) = delete;
  ~OnFakeCuda() {
    device.reset();
    EXPECT_EQ(cuda.Held(), FakeHeld());
    for (const std::string& violation : cuda.Violations()) ADD_FAILURE() << violation;
  }
};

std::shared_ptr<Device> MakeOnFakeCuda() {
  const auto made = std::make_shared<OnFakeCuda>();
  return {made, made->device.get()};
}

}  // namespace

std::vector<DeviceUnderTest> DevicesUnderTest() {
  std::vector<DeviceUnderTest> devices = {{"Host", [] { return MakeHostDevice(Dawdle); }},
                                          {"FakeCuda", MakeOnFakeCuda}};
  if (!LookForCuda().devices.empty()) {
    devices.push_back({"Cuda", [] { return Device::Open({DeviceName::Kind::kCuda, 0}).value(); }});
  }
  return devices;
}

}  // namespace stoker::testing
