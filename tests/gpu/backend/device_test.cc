// Every device behaves as gpu/backend/device.h documents for memory and processes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "core/batch/dtype.h"
#include "gpu/backend/device.h"
#include "gpu/ops/deferred_ops_job.h"
#include "tests/gpu/backend/device_fixture.h"
#include "tests/testing/devices/devices.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using testing::DeviceTest;
using testing::PinnedBytes;

TEST_P(DeviceTest, CopiesToTheDeviceAndBack) {
  const DeviceStream stream = MakeStream();
  for (const size_t size : {1, 255, 4096, 1'000'003}) {
    const PinnedBytes from(device_, size), to(device_, size);
    std::iota(from.data(), from.data() + size, static_cast<uint8_t>(size));
    std::fill_n(to.data(), size, 0);
    uint8_t* const on_device = Allocate(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(on_device) % 256, 0u);
    device_->Copy(on_device, from.data(), size, stream).value();
    device_->Copy(on_device, from.data(), 0, stream).value();
    device_->Copy(to.data(), on_device, size, stream).value();
    device_->SynchronizeAll().value();
    EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes()));
    device_->Free(on_device);
  }
  device_->Destroy(stream);
}

TEST_P(DeviceTest, CopiesUnpinnedMemory) {
  const DeviceStream stream = MakeStream();
  std::vector<uint8_t> from(1000, 7), to(1000);
  uint8_t* const on_device = Allocate(from.size());
  device_->Copy(on_device, from.data(), from.size(), stream).value();
  device_->Copy(to.data(), on_device, to.size(), stream).value();
  device_->SynchronizeAll().value();
  EXPECT_EQ(from, to);
  device_->Free(on_device);
  device_->Destroy(stream);
}

TEST_P(DeviceTest, AStreamRunsItsWorkInOrder) {
  constexpr size_t kSize = 64;
  const int rounds = testing::Effort(50);
  const PinnedBytes from(device_, kSize * rounds), to(device_, kSize * rounds);
  const DeviceStream stream = MakeStream();
  uint8_t* const on_device = Allocate(kSize);
  for (int round = 0; round < rounds; ++round) {  // all through one place
    uint8_t* const mine = from.data() + kSize * round;
    std::fill_n(mine, kSize, static_cast<uint8_t>(round));
    device_->Copy(on_device, mine, kSize, stream).value();
    device_->Copy(to.data() + kSize * round, on_device, kSize, stream).value();
  }
  device_->SynchronizeAll().value();
  EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes()));
  device_->Free(on_device);
  device_->Destroy(stream);
}

TEST_P(DeviceTest, ApplyDeferredRunsInStreamOrder) {
  DeferredOpsJob job{
      .rows = 2, .height = 5, .width = 7, .dtype = DType::kF32, .layout = Layout::kNchw};
  for (int channel = 0; channel < 3; ++channel) {
    job.scale[channel] = 1 / (channel + 2.0F);
    job.bias[channel] = static_cast<float>(-channel);
  }
  constexpr size_t kValues = size_t{2} * 5 * 7 * 3, kBytes = kValues * sizeof(float);
  const PinnedBytes from(device_, kValues), to(device_, kBytes);
  std::iota(from.data(), from.data() + kValues, 0);
  std::vector<float> expected(kValues);
  DeferredOpsJob plain = job;
  plain.from = from.data();
  plain.to = expected.data();
  ApplyDeferredPlain(plain);

  const DeviceStream stream = MakeStream();
  uint8_t* const stored = Allocate(kValues);
  uint8_t* const finished = Allocate(kBytes);
  job.from = stored;
  job.to = finished;
  device_->Copy(stored, from.data(), kValues, stream).value();
  device_->ApplyDeferred(job, stream).value();
  device_->Copy(to.data(), finished, kBytes, stream).value();
  device_->SynchronizeAll().value();
  std::vector<float> got(kValues);
  std::memcpy(got.data(), to.data(), kBytes);
  EXPECT_EQ(got, expected);
  device_->Free(stored);
  device_->Free(finished);
  device_->Destroy(stream);
}

// A stream waits for the record that existed when Wait was called, and keeps what it needs.

TEST_P(DeviceTest, FreeWaitsForWorkThatUsesTheMemory) {
  const PinnedBytes from(device_, 4096), to(device_, 4096);
  std::fill_n(from.data(), 4096, 9);
  const DeviceStream stream = MakeStream();
  uint8_t* const on_device = Allocate(4096);
  device_->Copy(on_device, from.data(), 4096, stream).value();
  device_->Copy(to.data(), on_device, 4096, stream).value();
  device_->Free(on_device);
  EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes()));
  device_->Free(nullptr);
  device_->Destroy(stream);
}

TEST_P(DeviceTest, CopiesWithinTheDevice) {
  const PinnedBytes from(device_, 300), to(device_, 300);
  std::iota(from.data(), from.data() + 300, 5);
  const DeviceStream stream = device_->MakeStream(StreamPriority::kHigh).value();
  uint8_t* const first = Allocate(300);
  uint8_t* const second = Allocate(300);
  device_->Copy(first, from.data(), 300, stream).value();
  device_->Copy(second, first, 300, stream).value();
  device_->Copy(to.data(), second, 300, stream).value();
  device_->SynchronizeAll().value();
  EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes()));
  device_->Free(first);
  device_->Free(second);
  device_->Destroy(stream);
}

// RecordAll covers all streams: those that others made, the default ones, and those that have gone.

// CUDA's legacy default stream by both of its names, and the thread's own.

TEST_P(DeviceTest, DefaultStreamsWork) {
  const PinnedBytes from(device_, 64), to(device_, 64);
  const DeviceEvent event = MakeEvent();
  uint8_t* const on_device = Allocate(64);
  for (uintptr_t handle = 0; handle <= 2; ++handle) {
    const DeviceStream stream{reinterpret_cast<void*>(handle)};
    std::fill_n(from.data(), 64, static_cast<uint8_t>(handle + 5));
    device_->Wait(stream, event).value();
    device_->Copy(on_device, from.data(), 64, stream).value();
    device_->Copy(to.data(), on_device, 64, stream).value();
    device_->Record(event, stream).value();
    device_->Synchronize(event).value();
    EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes())) << handle;
  }
  device_->Free(on_device);
  device_->Destroy(event);
}

TEST_P(DeviceTest, OutOfMemoryIsResourceExhausted) {
  const Result<void*> data = device_->Allocate(size_t{1} << 60);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.error().code, Code::kResourceExhausted);
  EXPECT_NE(data.error().cause.find("1152921504606846976 bytes"), std::string::npos)
      << data.error().cause;
  device_->Free(Allocate(0));
}

TEST_P(DeviceTest, ManyThreadsMayUseADevice) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const DeviceStream stream = MakeStream();
      const DeviceEvent event = MakeEvent();
      for (int round = 0; round < testing::Effort(10); ++round) {
        const PinnedBytes from(device_, 512), to(device_, 512);
        std::fill_n(from.data(), 512, static_cast<uint8_t>(thread * 16 + round));
        uint8_t* const on_device = Allocate(512);
        device_->Copy(on_device, from.data(), 512, stream).value();
        device_->Copy(to.data(), on_device, 512, stream).value();
        device_->Record(event, stream).value();
        device_->Synchronize(event).value();
        EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes()));
        device_->Free(on_device);
      }
      device_->Destroy(event);
      device_->Destroy(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(DeviceTest, AForkedChildIsRefused) {
  const DeviceStream stream = MakeStream();
  const DeviceEvent event = MakeEvent();
  uint8_t* const on_device = Allocate(64);
  const auto refused = [](const Status& status) {
    return !status.ok() && status.error().code == Code::kFailedPrecondition;
  };
  // The stream's thread has started: one that is starting may hold locks of a sanitizer's runtime,
  // which the child would find locked.
  ASSERT_TRUE(device_->Record(event, stream).ok());
  ASSERT_TRUE(device_->Synchronize(event).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);  // a hang becomes a signal
    std::vector<uint8_t> bytes(4096);
    if (device_->Allocate(64).ok() || device_->MakeStream().ok() || device_->MakeEvent().ok()) {
      _exit(1);
    }
    if (!refused(device_->Copy(on_device, bytes.data(), 64, stream))) _exit(2);
    if (!refused(device_->Record(event, stream)) || !refused(device_->Wait(stream, event))) {
      _exit(3);
    }
    if (!refused(device_->RecordAll(event)) || !refused(device_->Occupy(1, stream))) _exit(6);
    if (!refused(device_->Synchronize(event)) || !refused(device_->SynchronizeAll())) _exit(4);
    if (device_->Elapsed(event, event).ok()) _exit(7);
    if (device_->IsCapturing(stream).ok() || device_->AllocatePinned(64).ok()) _exit(8);
    if (device_->IsDone(event).ok() || !refused(device_->Pin(bytes.data(), 4096))) _exit(5);
    device_->Unpin(bytes.data());
    device_->Free(on_device);
    device_->Destroy(event);
    device_->Destroy(stream);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  device_->SynchronizeAll().value();  // the parent goes on
  device_->Free(on_device);
  device_->Destroy(event);
  device_->Destroy(stream);
}

// The device's threads stay in the parent: joining them would not end.

TEST(HostDeviceTest, MayBeDestroyedInAForkedChild) {
  std::shared_ptr<Device> device = Device::Open({DeviceName::Kind::kHost, 0}).value();
  const DeviceStream stream = device->MakeStream().value();
  const PinnedBytes bytes(device, 64);
  device->Copy(bytes.data() + 32, bytes.data(), 32, DeviceStream{}).value();
  device->SynchronizeAll().value();
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    std::destroy_at(&device);  // the last but one, and below the last
    std::destroy_at(&bytes);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  device->Destroy(stream);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::WithAndWithoutDelays(),
                         testing::NameOfDeviceAndDelay);

}  // namespace
}  // namespace stoker
