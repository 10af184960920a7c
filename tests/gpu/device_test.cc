// What gpu/device.h says, of every device.
#include "gpu/device.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/testing/devices.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using std::chrono::microseconds;
using testing::DeviceKind;
using testing::PinnedBytes;
using testing::TestDevice;

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

  TestDevice device_{std::get<0>(GetParam()), microseconds(std::get<1>(GetParam()))};
};

TEST_P(DeviceTest, CopiesThereAndBack) {
  const DeviceStream stream = MakeStream();
  for (const size_t size : {1, 255, 4096, 1'000'003}) {
    const PinnedBytes from(device_.device(), size), to(device_.device(), size);
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

TEST_P(DeviceTest, CopiesOfMemoryThatIsNotPinned) {
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

TEST_P(DeviceTest, TheWorkOfAStreamIsInOrder) {
  constexpr size_t kSize = 64;
  const int rounds = testing::Effort(50);
  const PinnedBytes from(device_.device(), kSize * rounds), to(device_.device(), kSize * rounds);
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

TEST_P(DeviceTest, FinishIsInOrder) {
  FinishJob job{.rows = 2, .height = 5, .width = 7, .dtype = DType::kF32, .layout = Layout::kNchw};
  for (int channel = 0; channel < 3; ++channel) {
    job.scale[channel] = 1 / (channel + 2.0F);
    job.bias[channel] = static_cast<float>(-channel);
  }
  constexpr size_t kValues = size_t{2} * 5 * 7 * 3, kBytes = kValues * sizeof(float);
  const PinnedBytes from(device_.device(), kValues), to(device_.device(), kBytes);
  std::iota(from.data(), from.data() + kValues, 0);
  std::vector<float> expected(kValues);
  FinishJob plain = job;
  plain.from = from.data();
  plain.to = expected.data();
  FinishPlain(plain);

  const DeviceStream stream = MakeStream();
  uint8_t* const stored = Allocate(kValues);
  uint8_t* const finished = Allocate(kBytes);
  job.from = stored;
  job.to = finished;
  device_->Copy(stored, from.data(), kValues, stream).value();
  device_->Finish(job, stream).value();
  device_->Copy(to.data(), finished, kBytes, stream).value();
  device_->SynchronizeAll().value();
  EXPECT_EQ(std::memcmp(to.data(), expected.data(), kBytes), 0);
  device_->Free(stored);
  device_->Free(finished);
  device_->Destroy(stream);
}

TEST_P(DeviceTest, StreamsDoNotWaitForEachOther) {
  const PinnedBytes from(device_.device(), 64);
  const DeviceStream held = MakeStream(), free = MakeStream();
  const DeviceEvent of_held = MakeEvent(), of_free = MakeEvent();
  uint8_t* const on_device = Allocate(128);
  device_.hook().Hold();
  device_->Copy(on_device, from.data(), 64, held).value();
  device_->Record(of_held, held).value();
  EXPECT_FALSE(device_->Done(of_held).value());
  AwaitHeld();
  device_->Copy(on_device + 64, from.data(), 64, free).value();
  device_->Record(of_free, free).value();
  device_->Synchronize(of_free).value();
  EXPECT_TRUE(device_->Done(of_free).value());
  EXPECT_FALSE(device_->Done(of_held).value());
  device_.hook().Release();
  device_->Synchronize(of_held).value();
  EXPECT_TRUE(device_->Done(of_held).value());
  device_->Free(on_device);
  for (const DeviceEvent event : {of_held, of_free}) device_->Destroy(event);
  for (const DeviceStream stream : {held, free}) device_->Destroy(stream);
}

TEST_P(DeviceTest, AnEventOrdersStreams) {
  constexpr size_t kSize = 4096;
  const PinnedBytes from(device_.device(), kSize), to(device_.device(), kSize);
  const DeviceStream first = MakeStream(), second = MakeStream();
  const DeviceEvent arrived = MakeEvent(), taken = MakeEvent();
  uint8_t* const on_device = Allocate(kSize);
  for (int round = 0; round < testing::Effort(50); ++round) {
    std::fill_n(from.data(), kSize, static_cast<uint8_t>(round));
    device_->Wait(first, taken).value();  // of the round before; never recorded in the first
    device_->Copy(on_device, from.data(), kSize, first).value();
    device_->Record(arrived, first).value();
    device_->Wait(second, arrived).value();
    device_->Copy(to.data(), on_device, kSize, second).value();
    device_->Record(taken, second).value();
    device_->Synchronize(taken).value();
    EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes())) << round;
  }
  device_->Free(on_device);
  for (const DeviceEvent event : {arrived, taken}) device_->Destroy(event);
  for (const DeviceStream stream : {first, second}) device_->Destroy(stream);
}

TEST_P(DeviceTest, AnEventNeverRecordedIsDone) {
  const DeviceStream stream = MakeStream();
  const DeviceEvent event = MakeEvent();
  EXPECT_TRUE(device_->Done(event).value());
  device_->Synchronize(event).value();
  device_->Wait(stream, event).value();
  device_->SynchronizeAll().value();
  device_->Destroy(event);
  device_->Destroy(stream);
}

TEST_P(DeviceTest, TheLastRecordOfAnEventCounts) {
  const PinnedBytes from(device_.device(), 64);
  const DeviceStream held = MakeStream(), free = MakeStream();
  const DeviceEvent event = MakeEvent();
  uint8_t* const on_device = Allocate(64);
  device_.hook().Hold();
  device_->Copy(on_device, from.data(), 64, held).value();
  AwaitHeld();
  device_->Record(event, held).value();
  EXPECT_FALSE(device_->Done(event).value());
  device_->Record(event, free).value();
  device_->Synchronize(event).value();  // would not end if it waited for `held`
  EXPECT_TRUE(device_->Done(event).value());
  device_.hook().Release();
  device_->Free(on_device);
  device_->Destroy(event);
  for (const DeviceStream stream : {held, free}) device_->Destroy(stream);
}

// A stream waits for the record that there was when it was told to, and keeps what it needs.
TEST_P(DeviceTest, AnEventMayBeRecordedAgainOrDestroyedWhileAStreamWaits) {
  const PinnedBytes from(device_.device(), 64), to(device_.device(), 64);
  std::fill_n(from.data(), 64, 9);
  std::fill_n(to.data(), 64, 0);
  for (const bool destroyed : {false, true}) {
    const DeviceStream first = MakeStream(), second = MakeStream(), third = MakeStream();
    const DeviceEvent event = MakeEvent(), end = MakeEvent();
    uint8_t* const on_device = Allocate(64);
    device_.hook().Hold();
    device_->Copy(on_device, from.data(), 64, first).value();
    AwaitHeld();
    device_->Record(event, first).value();
    device_->Wait(second, event).value();
    if (destroyed) {
      device_->Destroy(event);
    } else {
      device_->Record(event, third).value();
      device_->Synchronize(event).value();
    }
    device_->Copy(to.data(), on_device, 64, second).value();
    device_->Record(end, second).value();
    EXPECT_FALSE(device_->Done(end).value());
    device_.hook().Release();
    device_->Synchronize(end).value();
    EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes()));
    device_->Free(on_device);
    if (!destroyed) device_->Destroy(event);
    device_->Destroy(end);
    for (const DeviceStream stream : {first, second, third}) device_->Destroy(stream);
  }
}

TEST_P(DeviceTest, ADestroyedStreamEndsItsWork) {
  const PinnedBytes from(device_.device(), 64), to(device_.device(), 64);
  std::fill_n(from.data(), 64, 9);
  uint8_t* const on_device = Allocate(64);
  const DeviceStream stream = MakeStream();
  device_->Copy(on_device, from.data(), 64, stream).value();
  device_->Copy(to.data(), on_device, 64, stream).value();
  device_->Destroy(stream);
  device_->SynchronizeAll().value();
  EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes()));
  device_->Free(on_device);
}

TEST_P(DeviceTest, FreeWaitsForWhatUsesTheMemory) {
  const PinnedBytes from(device_.device(), 4096), to(device_.device(), 4096);
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

TEST_P(DeviceTest, CopiesOnTheDevice) {
  const PinnedBytes from(device_.device(), 300), to(device_.device(), 300);
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

// Of all streams: those that others made, the default ones, and those that have gone.
TEST_P(DeviceTest, RecordAllIsBehindEverything) {
  const PinnedBytes from(device_.device(), 256);
  const DeviceStream held = MakeStream(), free = MakeStream();
  const DeviceEvent all = MakeEvent(), of_held = MakeEvent();
  uint8_t* const on_device = Allocate(256);
  device_->RecordAll(all).value();
  device_->Synchronize(all).value();
  device_.hook().Hold();
  device_->Copy(on_device, from.data(), 64, held).value();
  AwaitHeld();
  device_->Record(of_held, held).value();
  device_->Copy(on_device + 64, from.data(), 64, free).value();
  device_->Copy(on_device + 128, from.data(), 64, DeviceStream{}).value();
  device_->RecordAll(all).value();  // does not wait
  EXPECT_FALSE(device_->Done(all).value());
  device_.hook().Release();
  device_->Synchronize(all).value();
  EXPECT_TRUE(device_->Done(of_held).value());
  device_->Free(on_device);
  for (const DeviceEvent event : {all, of_held}) device_->Destroy(event);
  for (const DeviceStream stream : {held, free}) device_->Destroy(stream);
}

TEST_P(DeviceTest, OccupiesAStreamForAtLeastSoLong) {
  const DeviceStream stream = MakeStream();
  const DeviceEvent begin = device_->MakeEvent(true).value();
  const DeviceEvent end = device_->MakeEvent(true).value();
  device_->Record(begin, stream).value();
  device_->Occupy(2'000'000, stream).value();
  device_->Record(end, stream).value();
  device_->Synchronize(end).value();
  EXPECT_GE(device_->Elapsed(begin, end).value(), 1'900'000u);  // a float's milliseconds
  for (const DeviceEvent event : {begin, end}) device_->Destroy(event);
  device_->Destroy(stream);
}

// CUDA's legacy default stream by both of its names, and the thread's own.
TEST_P(DeviceTest, DefaultStreamsAreThere) {
  const PinnedBytes from(device_.device(), 64), to(device_.device(), 64);
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

TEST_P(DeviceTest, MemoryThatThereIsNotIsResourceExhausted) {
  const Result<void*> data = device_->Allocate(size_t{1} << 60);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.error().code, Code::kResourceExhausted);
  EXPECT_NE(data.error().cause.find("1152921504606846976 bytes"), std::string::npos)
      << data.error().cause;
  device_->Free(Allocate(0));
}

TEST_P(DeviceTest, ManyThreadsMayUseIt) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const DeviceStream stream = MakeStream();
      const DeviceEvent event = MakeEvent();
      for (int round = 0; round < testing::Effort(10); ++round) {
        const PinnedBytes from(device_.device(), 512), to(device_.device(), 512);
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

TEST_P(DeviceTest, AForkedChildIsTold) {
  const DeviceStream stream = MakeStream();
  const DeviceEvent event = MakeEvent();
  uint8_t* const on_device = Allocate(64);
  const auto refused = [](const Status& status) {
    return !status.ok() && status.error().code == Code::kFailedPrecondition;
  };
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
    if (device_->Done(event).ok() || !refused(device_->Pin(bytes.data(), 4096))) _exit(5);
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

// Its threads stay behind: to join them would not end.
TEST(HostDeviceTest, MayGoInAForkedChild) {
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

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest,
                         ::testing::Combine(::testing::Values(DeviceKind::kHost,
                                                              DeviceKind::kFakeCuda),
                                            ::testing::Values(0, 300)),
                         [](const auto& info) {
                           return std::string(NameOf(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) == 0 ? "" : "Delayed");
                         });

}  // namespace
}  // namespace stoker
