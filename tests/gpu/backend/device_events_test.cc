// Every device behaves as gpu/backend/device.h documents for streams and events.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "gpu/backend/device.h"
#include "tests/gpu/backend/device_fixture.h"
#include "tests/testing/devices/devices.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using testing::PinnedBytes;

using DeviceEventsTest = testing::DeviceTest;

TEST_P(DeviceEventsTest, StreamsDoNotWaitForEachOther) {
  const PinnedBytes from(device_, 64);
  const DeviceStream held = MakeStream(), free = MakeStream();
  const DeviceEvent of_held = MakeEvent(), of_free = MakeEvent();
  uint8_t* const on_device = Allocate(128);
  hook_.Hold();
  device_->Copy(on_device, from.data(), 64, held).value();
  device_->Record(of_held, held).value();
  EXPECT_FALSE(device_->IsDone(of_held).value());
  AwaitHeld();
  device_->Copy(on_device + 64, from.data(), 64, free).value();
  device_->Record(of_free, free).value();
  device_->Synchronize(of_free).value();
  EXPECT_TRUE(device_->IsDone(of_free).value());
  EXPECT_FALSE(device_->IsDone(of_held).value());
  hook_.Release();
  device_->Synchronize(of_held).value();
  EXPECT_TRUE(device_->IsDone(of_held).value());
  device_->Free(on_device);
  for (const DeviceEvent event : {of_held, of_free}) device_->Destroy(event);
  for (const DeviceStream stream : {held, free}) device_->Destroy(stream);
}

TEST_P(DeviceEventsTest, AnEventOrdersStreams) {
  constexpr size_t kSize = 4096;
  const PinnedBytes from(device_, kSize), to(device_, kSize);
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

TEST_P(DeviceEventsTest, AnEventNeverRecordedIsDone) {
  const DeviceStream stream = MakeStream();
  const DeviceEvent event = MakeEvent();
  EXPECT_TRUE(device_->IsDone(event).value());
  device_->Synchronize(event).value();
  device_->Wait(stream, event).value();
  device_->SynchronizeAll().value();
  device_->Destroy(event);
  device_->Destroy(stream);
}

TEST_P(DeviceEventsTest, TheLastRecordOfAnEventCounts) {
  const PinnedBytes from(device_, 64);
  const DeviceStream held = MakeStream(), free = MakeStream();
  const DeviceEvent event = MakeEvent();
  uint8_t* const on_device = Allocate(64);
  hook_.Hold();
  device_->Copy(on_device, from.data(), 64, held).value();
  AwaitHeld();
  device_->Record(event, held).value();
  EXPECT_FALSE(device_->IsDone(event).value());
  device_->Record(event, free).value();
  device_->Synchronize(event).value();  // would not end if it waited for `held`
  EXPECT_TRUE(device_->IsDone(event).value());
  hook_.Release();
  device_->Free(on_device);
  device_->Destroy(event);
  for (const DeviceStream stream : {held, free}) device_->Destroy(stream);
}

TEST_P(DeviceEventsTest, AnEventMayBeRecordedAgainOrDestroyedWhileAStreamWaits) {
  const PinnedBytes from(device_, 64), to(device_, 64);
  std::fill_n(from.data(), 64, 9);
  std::fill_n(to.data(), 64, 0);
  for (const bool destroyed : {false, true}) {
    const DeviceStream first = MakeStream(), second = MakeStream(), third = MakeStream();
    const DeviceEvent event = MakeEvent(), end = MakeEvent();
    uint8_t* const on_device = Allocate(64);
    hook_.Hold();
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
    EXPECT_FALSE(device_->IsDone(end).value());
    hook_.Release();
    device_->Synchronize(end).value();
    EXPECT_TRUE(std::ranges::equal(from.bytes(), to.bytes()));
    device_->Free(on_device);
    if (!destroyed) device_->Destroy(event);
    device_->Destroy(end);
    for (const DeviceStream stream : {first, second, third}) device_->Destroy(stream);
  }
}

TEST_P(DeviceEventsTest, ADestroyedStreamFinishesItsWork) {
  const PinnedBytes from(device_, 64), to(device_, 64);
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

TEST_P(DeviceEventsTest, RecordAllWaitsForAllStreams) {
  const PinnedBytes from(device_, 256);
  const DeviceStream held = MakeStream(), free = MakeStream();
  const DeviceEvent all = MakeEvent(), of_held = MakeEvent();
  uint8_t* const on_device = Allocate(256);
  device_->RecordAll(all).value();
  device_->Synchronize(all).value();
  hook_.Hold();
  device_->Copy(on_device, from.data(), 64, held).value();
  AwaitHeld();
  device_->Record(of_held, held).value();
  device_->Copy(on_device + 64, from.data(), 64, free).value();
  device_->Copy(on_device + 128, from.data(), 64, DeviceStream{}).value();
  device_->RecordAll(all).value();  // does not wait
  EXPECT_FALSE(device_->IsDone(all).value());
  hook_.Release();
  device_->Synchronize(all).value();
  EXPECT_TRUE(device_->IsDone(of_held).value());
  device_->Free(on_device);
  for (const DeviceEvent event : {all, of_held}) device_->Destroy(event);
  for (const DeviceStream stream : {held, free}) device_->Destroy(stream);
}

TEST_P(DeviceEventsTest, OccupyTakesAtLeastTheGivenTime) {
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

INSTANTIATE_TEST_SUITE_P(Devices, DeviceEventsTest, testing::WithAndWithoutDelays(),
                         testing::NameOfDeviceAndDelay);

}  // namespace
}  // namespace stoker
