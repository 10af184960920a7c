// A device decodes the next batch while the consumer still reads the one in its memory, and writes
// nothing that the consumer reads.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "gpu/staging/device_ring.h"
#include "tests/engine/device/device_decoding.h"
#include "tests/testing/devices/hooked_device.h"
#include "tests/testing/devices/slow_stream.h"

namespace stoker {
namespace {

using ::stoker::testing::BytesOf;
using ::stoker::testing::ColumnBytes;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::PinnedBytes;
using ::stoker::testing::SimulatedDevices;
using ::stoker::testing::SlowStream;
using ::stoker::testing::StreamHook;

// Returns whether the event is done before a test that waits for it would be given up.
bool EndsSoon(Device& device, DeviceEvent event) {
  const auto given_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!device.IsDone(event).value()) {
    if (std::chrono::steady_clock::now() > given_up) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

class DeviceDecodeOrderTest : public testing::DeviceDecodeTest {
 protected:
  static constexpr int kBuffers = 2;

  ~DeviceDecodeOrderTest() override {
    inner_->Destroy(decoded_);
    inner_->Destroy(reader_);
  }

  // Records `decoded_` after the first batch that is decoded in memory that has been used before.
  Status Before(DeviceCall call) {
    if (decodes_ > kBuffers && !recorded_.exchange(true)) {
      inner_->Record(decoded_, {deferred_.load()}).value();
    }
    if (call == DeviceCall::kDecodeCrops) ++decodes_;
    return {};
  }

  StreamHook hook_;
  const std::shared_ptr<Device> inner_ = GetParam().make(hook_.AsBeforeWork());
  const std::shared_ptr<HookedDevice> hooked_ =
      std::make_shared<HookedDevice>(inner_, [this](DeviceCall call) { return Before(call); });
  const DeviceEvent decoded_ = inner_->MakeEvent().value();
  const DeviceStream reader_ = inner_->MakeStream({}).value();
  std::atomic<void*> deferred_{nullptr};  // the stream
  std::atomic<int> decodes_{0};
  std::atomic<bool> recorded_{false};
};

INSTANTIATE_TEST_SUITE_P(, DeviceDecodeOrderTest, ::testing::ValuesIn(SimulatedDevices()),
                         ::testing::PrintToStringParamName());

TEST_P(DeviceDecodeOrderTest, DecodesAndDoesNotFinishWhileTheConsumerReads) {
  LoaderOptions options = Options();
  const auto plain = Loader::Open(options).value();
  options.to_device = {.devices = {hooked_}, .buffers = kBuffers, .decodes = true};
  const auto loader = Loader::Open(options).value();
  const auto wanted = plain->Iterate(), got = loader->Iterate();
  auto slow = std::make_unique<SlowStream>(inner_, hook_);

  DeviceBatch first = got->NextOnDevice().value();
  deferred_ = first.Owner()->ring->deferred_stream().handle;
  const size_t bytes = first.images().bytes();
  const PinnedBytes read(inner_, (bytes + 4095) / 4096 * 4096);
  first.WaitOn(reader_).value();
  slow->HoldBack(reader_);
  inner_->Copy(read.data(), first.images().data, bytes, reader_).value();
  const RingEntry& entry = *first.Owner();
  first.Release();

  const DeviceBatch second = got->NextOnDevice().value();
  const DeviceBatch third = got->NextOnDevice().value();
  ASSERT_EQ(third.Owner().get(), &entry) << "in the memory of the first one";
  ASSERT_TRUE(recorded_);
  EXPECT_TRUE(EndsSoon(*inner_, decoded_)) << "decoding waits for the consumer";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which it would be finished
  EXPECT_FALSE(inner_->IsDone(entry.arrived).value());
  slow.reset();
  const ColumnBytes of_first = BytesOf(wanted->Next().value());
  EXPECT_TRUE(BytesOf(second, *inner_) == BytesOf(wanted->Next().value()));
  EXPECT_TRUE(BytesOf(third, *inner_) == BytesOf(wanted->Next().value()));
  const DeviceEvent end = inner_->MakeEvent().value();
  inner_->Record(end, reader_).value();
  inner_->Synchronize(end).value();
  inner_->Destroy(end);
  EXPECT_TRUE(std::equal(of_first[0].begin(), of_first[0].end(), read.data(), read.data() + bytes));
}

}  // namespace
}  // namespace stoker
