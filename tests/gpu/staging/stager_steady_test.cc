// In the steady state a stager never waits on the host. Consumers whose streams it does not know
// are waited for on the device, and several stagers may share one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/time/trace.h"
#include "tests/gpu/staging/staging.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using ::stoker::testing::Await;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::ReadBatch;
using ::stoker::testing::SimulatedDevices;
using ::stoker::testing::Staging;
using ::stoker::testing::StagingOptions;
using ::stoker::testing::StreamHook;
using ::stoker::testing::StreamReader;

class StagerSteadyTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, StagerSteadyTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

// On devices whose work a test can hold.
class StagerAheadTest : public StagerSteadyTest {};
INSTANTIATE_TEST_SUITE_P(, StagerAheadTest, ::testing::ValuesIn(SimulatedDevices()),
                         ::testing::PrintToStringParamName());

// The consumer keeps up with its own stream.
TEST_P(StagerSteadyTest, NeverWaitsOnTheHost) {
  for (const bool has_deferred_ops : {false, true}) {
    StagingOptions options;
    options.has_deferred_ops = has_deferred_ops;
    options.host.epoch_rows = 1 << 30;
    Staging staging(GetParam(), options);
    StreamReader reader(staging.device);
    for (int i = 0; i < Effort(1000); ++i) ExpectRight(reader, staging.Next(), 0, i);
    EXPECT_EQ(staging.device->count(DeviceCall::kSynchronize), 0);
    EXPECT_EQ(staging.device->count(DeviceCall::kSynchronizeAll), 0);
    // Memory, streams and events were made once: the ring's, among them those of its PieceCopier,
    // and the consumer's for an entry.
    EXPECT_EQ(staging.device->count(DeviceCall::kAllocate), 3);
    EXPECT_EQ(staging.device->count(DeviceCall::kMakeStream), has_deferred_ops ? 3 : 2);
    EXPECT_EQ(staging.device->count(DeviceCall::kMakeEvent), 3 * (3 + 1) + 1);
  }
}

// The device lags far and holds host batches whose copies have not begun. The stager goes once
// round its ring and no further.
TEST_P(StagerSteadyTest, RunsAheadOfTheDeviceByAtMostOneRing) {
  StagingOptions options;
  options.host.epoch_rows = 1 << 30;
  Staging staging(GetParam(), options);
  StreamReader reader(staging.device);
  std::deque<ReadBatch> reads;
  for (int more = 20; more > 0;) {
    DeviceBatch batch = staging.Next();
    batch.WaitOn(reader.stream()).value();
    reader.Work(100);
    reader.Issue(batch, reads.emplace_back()).value();
    more -= staging.stager->Stats().copy_wait_ns > 0 ? 1 : 0;
  }
  reader.Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
  EXPECT_LE(staging.source.max_lent(), 4);
  EXPECT_EQ(staging.device->count(DeviceCall::kSynchronize), 0) << "so that Stop is seen";
}

// A stream that has used a ring of batches is held, and the consumer lets go of each later
// batch at once, so that only the stager's own limit is left. Without deferred operations copies
// wait for the users. With them, a round of copies is done before the next one waits for the kernel
// that reads what it overwrites. After each round of copies that are not done, the stager takes
// one more host batch, and waits.
TEST_P(StagerAheadTest, IssuesACopyForEachBufferWithoutWaiting) {
  for (const bool has_deferred_ops : {false, true}) {
    SCOPED_TRACE(has_deferred_ops);
    constexpr int kBuffers = 5;
    StreamHook hook;
    StagingOptions options;
    options.buffers = kBuffers;
    options.has_deferred_ops = has_deferred_ops;
    options.host.epoch_rows = 1 << 30;
    Staging staging(std::make_shared<HookedDevice>(GetParam().make(hook.AsBeforeWork())), options);
    StreamReader reader(staging.device);
    std::vector<DeviceBatch> held;
    for (int i = 0; i < kBuffers; ++i) {
      held.push_back(staging.Next());
      ExpectRight(reader, held.back(), 0, i);
    }
    hook.Hold();
    reader.Work(1);
    Await([&] { return hook.Held(); });
    held.clear();
    const int ahead = (has_deferred_ops ? 2 : 1) * kBuffers;
    for (int i = 0; i < ahead; ++i) EXPECT_TRUE(staging.Next());
    const auto next = staging.stager->Next([&] { return staging.source.lent() == kBuffers + 1; });
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().code, Code::kCancelled);
    EXPECT_EQ(staging.stager->Stats().batches, static_cast<uint64_t>(kBuffers + ahead));
    hook.Release();
    for (int i = 0; i < kBuffers; ++i) {
      ExpectRight(reader, staging.Next(), 0, static_cast<uint64_t>(kBuffers + ahead + i));
    }
    EXPECT_EQ(staging.source.max_lent(), kBuffers + 1);
    EXPECT_GT(staging.stager->Stats().copy_wait_ns, 0U);
  }
}

// A consumer with its own order only says that it uses a batch. Its streams may be gone when it
// releases the batch, on a thread that may make no call to the device.
TEST_P(StagerSteadyTest, UnknownUseWaitsForAllWorkOfTheDevice) {
  StagingOptions options;
  thread_local bool letting_go = false;
  std::atomic<int> calls{0};
  options.hook = [&calls](DeviceCall) -> Status {
    calls += letting_go ? 1 : 0;
    return {};
  };
  Staging staging(GetParam(), options);
  StreamReader reader(staging.device);
  std::deque<ReadBatch> reads;
  for (int i = 0; i < Effort(500); ++i) {
    DeviceBatch batch = staging.Next();
    if (!batch) continue;
    batch.MarkUntracked();
    batch.Wait().value();
    reader.Work(i % 8);
    reader.Read(batch, reads.emplace_back());
    letting_go = true;
    batch.Release();
    letting_go = false;
  }
  reader.Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
  EXPECT_EQ(calls, 0);
  EXPECT_GT(staging.device->count(DeviceCall::kRecordAll), Effort(500) / 2);
  EXPECT_EQ(staging.device->count(DeviceCall::kSynchronizeAll), 0);
}

// Each thread has a default stream of its own, so recording it on another thread says nothing.
TEST_P(StagerSteadyTest, UseOnAPerThreadDefaultStreamRecordsAllStreams) {
  const DeviceStream threads_own{reinterpret_cast<void*>(uintptr_t{2})};
  Staging staging(GetParam());
  for (int i = 0; i < 20; ++i) {
    DeviceBatch batch = staging.Next();
    if (!batch) continue;
    batch.WaitOn(threads_own).value();
    std::thread([moved = std::move(batch)] {}).join();
  }
  EXPECT_GT(staging.device->count(DeviceCall::kRecordAll), 0);
}

TEST_P(StagerSteadyTest, SeveralStagersShareADevice) {
  const auto device = std::make_shared<HookedDevice>(GetParam().MakeDelayed());
  {
    std::vector<std::thread> consumers;
    for (int consumer = 0; consumer < 4; ++consumer) {
      consumers.emplace_back([&, consumer] {
        StagingOptions options;
        options.buffers = 2 + consumer;
        options.has_deferred_ops = consumer % 2 == 0;
        options.host.epoch_rows = 1 << 30;
        Staging staging(device, options);
        StreamReader reader(device);
        for (int i = 0; i < Effort(300); ++i) {
          const DeviceBatch batch = staging.Next();
          if (consumer >= 2) batch.MarkUntracked();
          if (consumer == 2) batch.RecordStream(reader.stream()).value();
          ExpectRight(reader, batch, 0, i);
        }
      });
    }
    for (std::thread& consumer : consumers) consumer.join();
  }
  EXPECT_EQ(device->alive(), 0);
}

TEST_P(StagerSteadyTest, StatsCountCopies) {
  StagingOptions options;
  options.host.epoch_rows = 16 * 5 + 3;
  options.across_epochs = false;
  options.host.one_slab = false;  // so that nothing lies between columns
  Staging staging(GetParam(), options);
  EXPECT_EQ(staging.stager->Stats().batches, 0U);
  while (staging.Next()) {
  }
  const StagerStats stats = staging.stager->Stats();
  EXPECT_EQ(stats.batches, 6U);
  EXPECT_EQ(stats.copied_bytes, 83U * (4 * 8 * 3 + 8));
  EXPECT_EQ(stats.device_bytes, 3U * 8192);
  EXPECT_GT(stats.host_wait_ns, 0U);
}

// Spans as a profiler sees them.
class Names final : public TraceListener {
 public:
  int64_t Begin(const char* name) override {
    std::lock_guard lock(mutex_);
    names_.emplace_back(name);
    return 0;
  }
  void End(int64_t) override {}
  std::vector<std::string> names() const {
    std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
};

TEST_P(StagerSteadyTest, TracesItsWork) {
  const auto listener = std::make_shared<Names>();
  Staging staging(GetParam());
  Trace trace;
  ASSERT_TRUE(trace.Listen(this, listener));
  testing::FakeHostBatches source;
  {
    Stager traced(staging.ring, source, {.across_epochs = true, .patience = {}, .trace = &trace});
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(traced.Next().ok());
  }
  const std::vector<std::string> spans = listener->names();
  EXPECT_THAT(spans, ::testing::Contains("stoker.copy"));
  EXPECT_THAT(spans, ::testing::Contains("stoker.stage.host"));
  EXPECT_THAT(spans, ::testing::Contains("stoker.stage.ring"));
}

}  // namespace
}  // namespace stoker
