// The memory of a released batch is reused after the streams that the program named, or after all
// streams.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "gpu/device_ring.h"
#include "tests/gpu/staging.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using ::stoker::testing::DeviceCall;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::PinnedBytes;
using ::stoker::testing::ReadBatch;
using ::stoker::testing::SimulatedDevices;
using ::stoker::testing::Staging;
using ::stoker::testing::StagingOptions;
using ::stoker::testing::StreamHook;
using ::stoker::testing::StreamReader;

class StagerReuseTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, StagerReuseTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

// A stream whose work does not end until Release, as a slow kernel or the copy of a checkpoint.
class SlowStream {
 public:
  SlowStream(std::shared_ptr<Device> device, StreamHook& hook)
      : device_(std::move(device)), hook_(hook), bytes_(device_, 4096) {
    stream_ = device_->MakeStream().value();
    memory_ = device_->Allocate(64).value();
    hook_.Hold();
    device_->Copy(memory_, bytes_.data(), 64, stream_).value();
    testing::Await([&] { return hook_.Held(); });
  }
  ~SlowStream() {
    hook_.Release();
    device_->Free(memory_);
    device_->Destroy(stream_);
  }
  SlowStream(const SlowStream&) = delete;
  SlowStream& operator=(const SlowStream&) = delete;

  // Makes later work of the stream wait until Release.
  void HoldBack(DeviceStream stream) const {
    const DeviceEvent end = device_->MakeEvent().value();
    device_->Record(end, stream_).value();
    device_->Wait(stream, end).value();
    device_->Destroy(end);
  }

 private:
  const std::shared_ptr<Device> device_;
  StreamHook& hook_;
  const PinnedBytes bytes_;
  DeviceStream stream_;
  void* memory_ = nullptr;
};

class SlowStreamTest : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  StreamHook hook_;
  const std::shared_ptr<HookedDevice> device_ =
      std::make_shared<HookedDevice>(GetParam().make(hook_.AsBeforeWork()));
};
INSTANTIATE_TEST_SUITE_P(, SlowStreamTest, ::testing::ValuesIn(SimulatedDevices()),
                         ::testing::PrintToStringParamName());

// As stoker.torch does: the batch goes out by DLPack, and the program's stream is named.
TEST_P(SlowStreamTest, DoesNotHoldUpBatchesWhoseStreamsAreNamed) {
  StagingOptions options;
  options.host.epoch_rows = 1 << 30;
  Staging staging(device_, options);
  StreamReader reader(device_);
  const SlowStream slow(device_->inner(), hook_);
  for (int i = 0; i < 20; ++i) {
    DeviceBatch batch = staging.Next();
    batch.MarkUntracked();
    batch.RecordStream(reader.stream()).value();
    ASSERT_EQ(device_->count(DeviceCall::kRecordAll), 0) << "or the next line does not end";
    ExpectRight(reader, batch, 0, i);
  }
}

TEST_P(SlowStreamTest, HoldsUpBatchesWhoseUsersAreUnknown) {
  StagingOptions options;
  options.host.epoch_rows = 1 << 30;
  Staging staging(device_, options);
  auto slow = std::make_unique<SlowStream>(device_->inner(), hook_);
  for (int i = 0; i < options.buffers; ++i) {
    DeviceBatch batch = staging.Next();
    batch.MarkUntracked();
    batch.Wait().value();
  }
  const DeviceEvent event = device_->inner()->MakeEvent().value();
  StreamReader reader(device_);
  const DeviceBatch batch = staging.Next();
  batch.WaitOn(reader.stream()).value();
  device_->inner()->Record(event, reader.stream()).value();
  EXPECT_FALSE(device_->inner()->Done(event).value());
  slow.reset();
  ExpectRight(reader, batch, 0, options.buffers);
  device_->inner()->Destroy(event);
}

// The consumer's work on a batch has not ended. The next batch for this memory is copied already,
// and not finished. The one after that is not copied: the kernel has not read the bytes yet.
void ExpectCopiesAheadOfSlowWork(Staging& staging, int buffers, StreamHook& hook, bool unknown) {
  Device& device = *staging.device->inner();
  StreamReader reader(staging.device);
  auto slow = std::make_unique<SlowStream>(staging.device->inner(), hook);
  ReadBatch read, read_again;
  {
    const DeviceBatch first = staging.Next();
    first.WaitOn(reader.stream()).value();
    if (unknown) first.MarkUntracked();
    slow->HoldBack(reader.stream());
    reader.Read(first, read);
  }
  for (int i = 1; i < buffers; ++i) (void)staging.Next();
  {
    const DeviceBatch again = staging.Next();
    const StagedBatch& entry = *again.Owner();
    ASSERT_EQ(entry.ring_index, 0U) << "the memory of the first one";
    testing::Await([&] { return device.Done(entry.copied).value(); });
    EXPECT_FALSE(device.Done(entry.arrived).value());
    again.WaitOn(reader.stream()).value();
    reader.Read(again, read_again);
  }
  for (int i = 1; i < buffers; ++i) (void)staging.Next();
  const DeviceBatch third = staging.Next();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which it would be copied
  EXPECT_FALSE(device.Done(third.Owner()->copied).value());
  slow.reset();
  ExpectRight(reader, third, 0, static_cast<uint64_t>(2 * buffers));
  ExpectRight(read_again);
  ExpectRight(read);
}

TEST_P(SlowStreamTest, DoesNotHoldUpTheNextCopy) {
  for (const bool has_work : {false, true}) {
    for (const bool unknown : {false, true}) {
      StagingOptions options;
      options.has_deferred_ops = true;
      options.has_work = has_work;
      options.host.epoch_rows = 1 << 30;
      Staging staging(device_, options);
      ExpectCopiesAheadOfSlowWork(staging, options.buffers, hook_, unknown);
    }
  }
}

// The streams of WaitOn and RecordStream are all waited for, on whichever thread they are named.
TEST_P(StagerReuseTest, WaitsForEveryNamedStream) {
  StagingOptions options;
  options.host.epoch_rows = 1 << 30;
  Staging staging(GetParam(), options);
  StreamReader first(staging.device), second(staging.device), third(staging.device);
  std::deque<ReadBatch> reads;
  for (int i = 0; i < Effort(300); ++i) {
    DeviceBatch batch = staging.Next();
    batch.MarkUntracked();
    first.Issue(batch, reads.emplace_back()).value();
    batch.Wait().value();  // the others do not wait for the batch themselves
    second.Work(i % 8);
    third.Work(i % 5);
    second.Read(batch, reads.emplace_back());
    third.Read(batch, reads.emplace_back());
    batch.RecordStream(second.stream()).value();
    std::thread([&] { batch.RecordStream(third.stream()).value(); }).join();
    batch.RecordStream(second.stream()).value();  // once more
    std::thread([moved = std::move(batch)] {}).join();
  }
  for (StreamReader* const reader : {&first, &second, &third}) reader->Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
  EXPECT_EQ(staging.device->count(DeviceCall::kRecordAll), 0);
}

// Consumers that pass no stream use streams of their own, which wait for nothing.
TEST_P(StagerReuseTest, ABatchThatIsGivenToNoStreamHasArrived) {
  StagingOptions options;
  options.host.epoch_rows = 1 << 30;
  Staging staging(GetParam(), options);
  StreamReader reader(staging.device);
  std::deque<ReadBatch> reads;
  for (int i = 0; i < Effort(300); ++i) {
    const DeviceBatch batch = staging.Next();
    batch.GiveTo(std::nullopt).value();
    reader.Read(batch, reads.emplace_back());
  }
  reader.Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
}

// The stream that DLPack passes is waited for before reuse only if the program names streams.
TEST_P(StagerReuseTest, ABatchThatIsGivenToAStreamIsUntrackedUntilOneIsNamed) {
  StagingOptions options;
  options.host.epoch_rows = 1 << 30;
  Staging staging(GetParam(), options);
  StreamReader given(staging.device), named(staging.device);
  std::deque<ReadBatch> reads;
  for (const bool names : {true, false}) {
    for (int i = 0; i < Effort(100); ++i) {
      DeviceBatch batch = staging.Next();
      batch.GiveTo(given.stream()).value();
      if (names) batch.RecordStream(named.stream()).value();
      given.Work(i % 8);
      given.Read(batch, reads.emplace_back());
      batch.Release();
    }
    EXPECT_EQ(staging.device->count(DeviceCall::kRecordAll) > 0, !names);
  }
  given.Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
}

// A stream that was named for a batch does not count for the next batch in its memory.
TEST_P(StagerReuseTest, NamesCountForOneBatch) {
  StagingOptions options;
  options.host.epoch_rows = 1 << 30;
  Staging staging(GetParam(), options);
  StreamReader reader(staging.device);
  int unknown = 0;
  for (int i = 0; i < 60; ++i) {
    const DeviceBatch batch = staging.Next();
    batch.MarkUntracked();
    if (i / 6 % 2 == 0) {
      batch.RecordStream(reader.stream()).value();
    } else {
      ++unknown;
    }
    ExpectRight(reader, batch, 0, i);
  }
  (void)staging.Next();
  EXPECT_EQ(staging.device->count(DeviceCall::kRecordAll), unknown);
}

// Another thread cannot refer to it, so no name helps.
TEST_P(StagerReuseTest, AThreadsDefaultStreamStaysUnknown) {
  const DeviceStream threads_own{reinterpret_cast<void*>(uintptr_t{2})};
  Staging staging(GetParam());
  StreamReader reader(staging.device);
  for (int i = 0; i < 12; ++i) {
    const DeviceBatch batch = staging.Next();
    if (!batch) continue;
    batch.RecordStream(threads_own).value();
    batch.RecordStream(reader.stream()).value();
  }
  EXPECT_GT(staging.device->count(DeviceCall::kRecordAll), 6);
}

}  // namespace
}  // namespace stoker
