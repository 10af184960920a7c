#include "tests/testing/devices/devices.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "gpu/backend/open_device.h"
#include "tests/testing/random.h"

namespace stoker::testing {

namespace {

constexpr std::align_val_t kPage{4096};

// A delay called on a stream's thread. Every third stream is slow, every third is not delayed at
// all.
void DelaySometimes() {
  static std::atomic<uint32_t> streams{0};
  thread_local const uint32_t stream = streams++;
  thread_local Random random(stream);
  if (stream % 3 == 1 || !random.OneIn(stream % 3 == 2 ? 4 : 16)) return;
  if (random.OneIn(2)) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(random.Between(1, 200)));
}

// A device and its FakeCuda.
struct DeviceOnFakeCuda {
  explicit DeviceOnFakeCuda(BeforeWork before_work)
      : cuda(FakeMachine{.before_work = std::move(before_work)}) {}
  DeviceOnFakeCuda(const DeviceOnFakeCuda&) = delete;
  DeviceOnFakeCuda& operator=(const DeviceOnFakeCuda&) = delete;
  ~DeviceOnFakeCuda() {
    device.reset();
    EXPECT_EQ(cuda.Held(), FakeHeld());
    for (const std::string& violation : cuda.Violations()) ADD_FAILURE() << violation;
  }

  FakeCuda cuda;
  std::shared_ptr<Device> device = OpenFakeDevice().value();
};

std::shared_ptr<Device> MakeOnFakeCuda(BeforeWork before_work) {
  const auto made = std::make_shared<DeviceOnFakeCuda>(std::move(before_work));
  return {made, made->device.get()};
}

std::shared_ptr<Device> OpenGpu(const BeforeWork& /*before_work*/) {
  return Device::Open({DeviceName::Kind::kCuda, 0}).value();
}

}  // namespace

std::shared_ptr<Device> DeviceUnderTest::MakeDelayed() const { return make(DelaySometimes); }

std::vector<DeviceUnderTest> SimulatedDevices() {
  return {{"Host", MakeHostDevice}, {"FakeCuda", MakeOnFakeCuda}};
}

std::vector<DeviceUnderTest> DevicesUnderTest() {
  std::vector<DeviceUnderTest> devices = SimulatedDevices();
  if (!LookForCuda().devices.empty()) devices.push_back({"Cuda", OpenGpu});
  return devices;
}

struct StreamHook::Shared {
  std::chrono::microseconds longest;
  std::mutex mutex;
  std::condition_variable released;
  std::minstd_rand random;
  bool hold_next = false;
  bool held = false;
  uint64_t releases = 0;
};

StreamHook::StreamHook(std::chrono::microseconds longest, uint64_t seed)
    : shared_(std::make_shared<Shared>()) {
  shared_->longest = longest;
  shared_->random.seed(static_cast<std::minstd_rand::result_type>(seed));
}

BeforeWork StreamHook::AsBeforeWork() const {
  return [shared = shared_] {
    std::unique_lock lock(shared->mutex);
    if (std::exchange(shared->hold_next, false)) {
      const uint64_t before = shared->releases;
      shared->held = true;
      shared->released.wait(lock, [&] { return shared->releases != before; });
    }
    if (shared->longest.count() == 0) return;
    const auto delay = shared->longest * (shared->random() % 1024) / 1024;
    lock.unlock();
    std::this_thread::sleep_for(delay);
  };
}

void StreamHook::Hold() {
  std::lock_guard lock(shared_->mutex);
  shared_->hold_next = true;
}

bool StreamHook::Held() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->held;
}

void StreamHook::Release() {
  std::lock_guard lock(shared_->mutex);
  shared_->hold_next = false;  // nothing had arrived before
  shared_->held = false;
  ++shared_->releases;
  shared_->released.notify_all();
}

PinnedBytes::PinnedBytes(std::shared_ptr<Device> device, size_t size)
    : device_(std::move(device)),
      data_(static_cast<uint8_t*>(::operator new(size, kPage))),
      size_(size) {
  device_->Pin(data_, size_).value();
}

PinnedBytes::~PinnedBytes() {
  device_->Unpin(data_);
  ::operator delete(data_, kPage);
}

}  // namespace stoker::testing
