#include "tests/testing/devices.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "gpu/open_device.h"

namespace stoker::testing {

namespace {

constexpr std::align_val_t kPage{4096};

}  // namespace

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
  shared_->hold_next = false;  // nothing had come so far
  shared_->held = false;
  ++shared_->releases;
  shared_->released.notify_all();
}

TestDevice::TestDevice(DeviceKind kind, std::chrono::microseconds longest_delay)
    : hook_(longest_delay) {
  if (kind == DeviceKind::kHost) {
    device_ = MakeHostDevice(hook_.AsBeforeWork());
    return;
  }
  cuda_ = std::make_unique<FakeCuda>(FakeMachine{.before_work = hook_.AsBeforeWork()});
  device_ = OpenFakeDevice().value();
}

TestDevice::~TestDevice() {
  hook_.Release();
  device_.reset();
  if (cuda_ == nullptr) return;
  for (const std::string& violation : cuda_->Violations()) ADD_FAILURE() << violation;
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
