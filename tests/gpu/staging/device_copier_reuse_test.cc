// The memory of a released batch is reused after the streams that the program named, or after all
// streams.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "gpu/staging/device_ring.h"
#include "tests/gpu/staging/copier_setup.h"
#include "tests/testing/devices/slow_stream.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using ::stoker::testing::CopierSetup;
using ::stoker::testing::CopierSetupOptions;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::FakeHostBatches;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::ReadBatch;
using ::stoker::testing::SimulatedDevices;
using ::stoker::testing::SlowStream;
using ::stoker::testing::StreamHook;
using ::stoker::testing::StreamReader;

class DeviceCopierReuseTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, DeviceCopierReuseTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

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
  CopierSetupOptions options;
  options.host.epoch_rows = 1 << 30;
  CopierSetup setup(device_, options);
  StreamReader reader(device_);
  const SlowStream slow(device_->inner(), hook_);
  for (int i = 0; i < 20; ++i) {
    DeviceBatch batch = setup.Next();
    batch.MarkUntracked();
    batch.RecordStream(reader.stream()).value();
    ASSERT_EQ(device_->count(DeviceCall::kRecordAll), 0) << "or the next line does not end";
    ExpectRight(reader, batch, 0, i);
  }
}

TEST_P(SlowStreamTest, HoldsUpBatchesWhoseUsersAreUnknown) {
  CopierSetupOptions options;
  options.host.epoch_rows = 1 << 30;
  CopierSetup setup(device_, options);
  auto slow = std::make_unique<SlowStream>(device_->inner(), hook_);
  for (int i = 0; i < options.buffers; ++i) {
    DeviceBatch batch = setup.Next();
    batch.MarkUntracked();
    batch.Wait().value();
  }
  const DeviceEvent event = device_->inner()->MakeEvent().value();
  StreamReader reader(device_);
  const DeviceBatch batch = setup.Next();
  batch.WaitOn(reader.stream()).value();
  device_->inner()->Record(event, reader.stream()).value();
  EXPECT_FALSE(device_->inner()->IsDone(event).value());
  slow.reset();
  ExpectRight(reader, batch, 0, options.buffers);
  device_->inner()->Destroy(event);
}

// Fails the `nth` such call of the copier's threads.
struct Failure {
  DeviceCall call;
  int nth;
  bool after_wait;  // when the deferred stream waits for the users of the memory
};

HookedDevice::Hook Failing(const Failure& failure) {
  auto calls = std::make_shared<std::atomic<int>>(0);
  return [failure, calls, tests = std::this_thread::get_id()](DeviceCall call) -> Status {
    if (call != failure.call || std::this_thread::get_id() == tests) return {};
    if (++*calls != failure.nth) return {};
    return Error{Code::kUnavailable, "injected"};
  };
}

// The third batch, which is for the memory of the first one, fails. The consumer's work on the
// first one has not ended.
void ExpectReuseAfterTheUsers(CopierSetup& setup, StreamHook& hook, const Failure& failure,
                              bool unknown) {
  StreamReader reader(setup.device);
  auto slow = std::make_unique<SlowStream>(setup.device->inner(), hook);
  ReadBatch read;
  DeviceBatch first = setup.Next();
  const DeviceBatch second = setup.Next();
  first.WaitOn(reader.stream()).value();
  if (unknown) first.MarkUntracked();
  slow->HoldBack(reader.stream());
  reader.Read(first, read);
  first.Release();
  if (failure.after_wait) {  // the copier ends after what it has issued, which waits for the users
    (void)setup.copier->Next([] { return true; });  // frees the memory, if users are unknown
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(setup.copier->Next([] { return true; }).error().code, Code::kCancelled);
    slow.reset();
  }
  EXPECT_EQ(setup.copier->Next().error().cause, "injected");
  setup.copier.reset();

  FakeHostBatches source;
  (void)source.Next({}).value();  // so that the next one has other bytes than the first
  DeviceCopier copier(setup.ring, source, {.across_epochs = true, .patience = {}});
  const DeviceBatch next = copier.Next().value();
  const RingEntry& entry = *next.Owner();
  ASSERT_EQ(entry.ring_index, 0U) << "the memory of the first one";
  if (!failure.after_wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which it would be finished
    EXPECT_FALSE(setup.device->inner()->IsDone(entry.arrived).value());
    slow.reset();
  }
  ExpectRight(reader, next, 0, 1);
  ExpectRight(read);
}

// The consumer's work on a batch has not ended. The next batch for this memory is copied already,
// and not finished. The one after that is not copied: the kernel has not read the bytes yet.
void ExpectCopiesAheadOfSlowWork(CopierSetup& setup, int buffers, StreamHook& hook, bool unknown) {
  Device& device = *setup.device->inner();
  StreamReader reader(setup.device);
  auto slow = std::make_unique<SlowStream>(setup.device->inner(), hook);
  ReadBatch read, read_again;
  {
    const DeviceBatch first = setup.Next();
    first.WaitOn(reader.stream()).value();
    if (unknown) first.MarkUntracked();
    slow->HoldBack(reader.stream());
    reader.Read(first, read);
  }
  for (int i = 1; i < buffers; ++i) (void)setup.Next();
  {
    const DeviceBatch again = setup.Next();
    const RingEntry& entry = *again.Owner();
    ASSERT_EQ(entry.ring_index, 0U) << "the memory of the first one";
    testing::Await([&] { return device.IsDone(entry.copied).value(); });
    EXPECT_FALSE(device.IsDone(entry.arrived).value());
    again.WaitOn(reader.stream()).value();
    reader.Read(again, read_again);
  }
  for (int i = 1; i < buffers; ++i) (void)setup.Next();
  const DeviceBatch third = setup.Next();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which it would be copied
  EXPECT_FALSE(device.IsDone(third.Owner()->copied).value());
  slow.reset();
  ExpectRight(reader, third, 0, static_cast<uint64_t>(2 * buffers));
  ExpectRight(read_again);
  ExpectRight(read);
}

TEST_P(SlowStreamTest, DoesNotHoldUpTheNextCopy) {
  for (const bool has_work : {false, true}) {
    for (const bool unknown : {false, true}) {
      CopierSetupOptions options;
      options.has_deferred_ops = true;
      options.has_work = has_work;
      options.host.epoch_rows = 1 << 30;
      CopierSetup setup(device_, options);
      ExpectCopiesAheadOfSlowWork(setup, options.buffers, hook_, unknown);
    }
  }
}

// Otherwise a rate would count the bytes of copies that have yet to be made.
TEST_P(SlowStreamTest, OnlyCopiesThatHaveEndedAreTimed) {
  CopierSetupOptions options;
  options.host.epoch_rows = 16 * 4;
  options.across_epochs = false;
  options.timed = true;
  CopierSetup setup(device_, options);
  hook_.Hold();
  (void)setup.Next();
  const DeviceCopyStats issued = setup.copier->Stats();
  EXPECT_GT(issued.copied_bytes, 0U);
  EXPECT_EQ(issued.timed_bytes, 0U);
  EXPECT_EQ(issued.copy_ns, 0U);
  hook_.Release();
  while (setup.Next()) {
  }
  testing::Await([&] {
    (void)setup.copier->Next([] { return true; });  // the next epoch's first batch
    const DeviceCopyStats stats = setup.copier->Stats();
    return stats.timed_bytes >= issued.copied_bytes && stats.copy_ns > 0;
  });
}

// A batch that could not be copied has not overwritten the memory of an earlier one, whose users
// the ring's next copier waits for. If work that was issued later fails, the copier has waited.
TEST_P(SlowStreamTest, AFailureDoesNotForgetTheUsersOfItsMemory) {
  // A batch is copied, and its labels again on the device. Either stream waits once for each batch,
  // and then for the users; an event is recorded after its copies, and one after all of its work.
  const Failure failures[] = {
      {DeviceCall::kCopy, 5, false},         {DeviceCall::kRecord, 5, false},
      {DeviceCall::kWait, 6, false},         {DeviceCall::kWait, 7, false},
      {DeviceCall::kApplyDeferred, 3, true}, {DeviceCall::kCopy, 6, true},
      {DeviceCall::kRecord, 6, true}};
  for (const Failure& failure : failures) {
    for (const bool unknown : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "call " << static_cast<int>(failure.call) << ", "
                                        << failure.nth << (unknown ? ", unknown users" : ""));
      CopierSetupOptions options;
      options.buffers = 2;
      options.has_deferred_ops = true;
      CopierSetup setup(std::make_shared<HookedDevice>(device_->inner(), Failing(failure)),
                        options);
      ExpectReuseAfterTheUsers(setup, hook_, failure, unknown);
    }
  }
}

// The streams of WaitOn and RecordStream are all waited for, on whichever thread they are named.
TEST_P(DeviceCopierReuseTest, WaitsForEveryNamedStream) {
  CopierSetupOptions options;
  options.host.epoch_rows = 1 << 30;
  CopierSetup setup(GetParam(), options);
  StreamReader first(setup.device), second(setup.device), third(setup.device);
  std::deque<ReadBatch> reads;
  for (int i = 0; i < Effort(300); ++i) {
    DeviceBatch batch = setup.Next();
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
  EXPECT_EQ(setup.device->count(DeviceCall::kRecordAll), 0);
}

// Consumers that pass no stream use streams of their own, which wait for nothing.
TEST_P(DeviceCopierReuseTest, ABatchThatIsGivenToNoStreamHasArrived) {
  CopierSetupOptions options;
  options.host.epoch_rows = 1 << 30;
  CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  std::deque<ReadBatch> reads;
  for (int i = 0; i < Effort(300); ++i) {
    const DeviceBatch batch = setup.Next();
    batch.GiveTo(std::nullopt).value();
    reader.Read(batch, reads.emplace_back());
  }
  reader.Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
}

// The stream that DLPack passes is waited for before reuse only if the program names streams.
TEST_P(DeviceCopierReuseTest, ABatchThatIsGivenToAStreamIsUntrackedUntilOneIsNamed) {
  CopierSetupOptions options;
  options.host.epoch_rows = 1 << 30;
  CopierSetup setup(GetParam(), options);
  StreamReader given(setup.device), named(setup.device);
  std::deque<ReadBatch> reads;
  for (const bool names : {true, false}) {
    for (int i = 0; i < Effort(100); ++i) {
      DeviceBatch batch = setup.Next();
      batch.GiveTo(given.stream()).value();
      if (names) batch.RecordStream(named.stream()).value();
      given.Work(i % 8);
      given.Read(batch, reads.emplace_back());
      batch.Release();
    }
    EXPECT_EQ(setup.device->count(DeviceCall::kRecordAll) > 0, !names);
  }
  given.Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
}

// A stream that was named for a batch does not count for the next batch in its memory.
TEST_P(DeviceCopierReuseTest, NamesCountForOneBatch) {
  CopierSetupOptions options;
  options.host.epoch_rows = 1 << 30;
  CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  int unknown = 0;
  for (int i = 0; i < 60; ++i) {
    const DeviceBatch batch = setup.Next();
    batch.MarkUntracked();
    if (i / 6 % 2 == 0) {
      batch.RecordStream(reader.stream()).value();
    } else {
      ++unknown;
    }
    ExpectRight(reader, batch, 0, i);
  }
  (void)setup.Next();
  EXPECT_EQ(setup.device->count(DeviceCall::kRecordAll), unknown);
}

// Another thread cannot refer to it, so no name helps.
TEST_P(DeviceCopierReuseTest, AThreadsDefaultStreamStaysUnknown) {
  const DeviceStream threads_own{reinterpret_cast<void*>(uintptr_t{2})};
  CopierSetup setup(GetParam());
  StreamReader reader(setup.device);
  for (int i = 0; i < 12; ++i) {
    const DeviceBatch batch = setup.Next();
    if (!batch) continue;
    batch.RecordStream(threads_own).value();
    batch.RecordStream(reader.stream()).value();
  }
  EXPECT_GT(setup.device->count(DeviceCall::kRecordAll), 6);
}

}  // namespace
}  // namespace stoker
