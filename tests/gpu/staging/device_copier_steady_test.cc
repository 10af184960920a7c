// In the steady state a copier never waits on the host. Consumers whose streams it does not know
// are waited for on the device, and several copiers may share one.
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
#include "tests/gpu/staging/copier_setup.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using ::stoker::testing::Await;
using ::stoker::testing::CopierSetup;
using ::stoker::testing::CopierSetupOptions;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::ReadBatch;
using ::stoker::testing::SimulatedDevices;
using ::stoker::testing::StreamHook;
using ::stoker::testing::StreamReader;

class DeviceCopierSteadyTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, DeviceCopierSteadyTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

// On devices whose work a test can hold.
class DeviceCopierAheadTest : public DeviceCopierSteadyTest {};
INSTANTIATE_TEST_SUITE_P(, DeviceCopierAheadTest, ::testing::ValuesIn(SimulatedDevices()),
                         ::testing::PrintToStringParamName());

// The consumer keeps up with its own stream.
TEST_P(DeviceCopierSteadyTest, NeverWaitsOnTheHost) {
  for (const bool has_deferred_ops : {false, true}) {
    CopierSetupOptions options;
    options.has_deferred_ops = has_deferred_ops;
    options.host.epoch_rows = 1 << 30;
    CopierSetup setup(GetParam(), options);
    StreamReader reader(setup.device);
    for (int i = 0; i < Effort(1000); ++i) ExpectRight(reader, setup.Next(), 0, i);
    EXPECT_EQ(setup.device->count(DeviceCall::kSynchronize), 0);
    EXPECT_EQ(setup.device->count(DeviceCall::kSynchronizeAll), 0);
    // Memory, streams and events were made once: the ring's, among them those of its PieceCopier,
    // and the consumer's for an entry.
    EXPECT_EQ(setup.device->count(DeviceCall::kAllocate), 3);
    EXPECT_EQ(setup.device->count(DeviceCall::kMakeStream), has_deferred_ops ? 3 : 2);
    EXPECT_EQ(setup.device->count(DeviceCall::kMakeEvent), 3 * (3 + 1) + 1);
  }
}

// The device lags far and holds host batches whose copies have not begun. The copier goes once
// round its ring and no further.
TEST_P(DeviceCopierSteadyTest, RunsAheadOfTheDeviceByAtMostOneRing) {
  CopierSetupOptions options;
  options.host.epoch_rows = 1 << 30;
  CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  std::deque<ReadBatch> reads;
  for (int more = 20; more > 0;) {
    DeviceBatch batch = setup.Next();
    batch.WaitOn(reader.stream()).value();
    reader.Work(100);
    reader.Issue(batch, reads.emplace_back()).value();
    more -= setup.copier->Stats().copy_wait_ns > 0 ? 1 : 0;
  }
  reader.Await();
  for (const ReadBatch& read : reads) ExpectRight(read);
  EXPECT_LE(setup.source.max_lent(), 4);
  EXPECT_EQ(setup.device->count(DeviceCall::kSynchronize), 0) << "so that Stop is seen";
}

// A stream that has used a ring of batches is held, and the consumer lets go of each later
// batch at once, so that only the copier's own limit is left. Without deferred operations copies
// wait for the users. With them, a round of copies is done before the next one waits for the kernel
// that reads what it overwrites. After each round of copies that are not done, the copier takes
// one more host batch, and waits.
TEST_P(DeviceCopierAheadTest, IssuesACopyForEachBufferWithoutWaiting) {
  for (const bool has_deferred_ops : {false, true}) {
    SCOPED_TRACE(has_deferred_ops);
    constexpr int kBuffers = 5;
    StreamHook hook;
    CopierSetupOptions options;
    options.buffers = kBuffers;
    options.has_deferred_ops = has_deferred_ops;
    options.host.epoch_rows = 1 << 30;
    CopierSetup setup(std::make_shared<HookedDevice>(GetParam().make(hook.AsBeforeWork())),
                      options);
    StreamReader reader(setup.device);
    std::vector<DeviceBatch> held;
    for (int i = 0; i < kBuffers; ++i) {
      held.push_back(setup.Next());
      ExpectRight(reader, held.back(), 0, i);
    }
    hook.Hold();
    reader.Work(1);
    Await([&] { return hook.Held(); });
    held.clear();
    const int ahead = (has_deferred_ops ? 2 : 1) * kBuffers;
    for (int i = 0; i < ahead; ++i) EXPECT_TRUE(setup.Next());
    const auto next = setup.copier->Next([&] { return setup.source.lent() == kBuffers + 1; });
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().code, Code::kCancelled);
    EXPECT_EQ(setup.copier->Stats().batches, static_cast<uint64_t>(kBuffers + ahead));
    hook.Release();
    for (int i = 0; i < kBuffers; ++i) {
      ExpectRight(reader, setup.Next(), 0, static_cast<uint64_t>(kBuffers + ahead + i));
    }
    EXPECT_EQ(setup.source.max_lent(), kBuffers + 1);
    EXPECT_GT(setup.copier->Stats().copy_wait_ns, 0U);
  }
}

// A consumer with its own order only says that it uses a batch. Its streams may be gone when it
// releases the batch, on a thread that may make no call to the device.
TEST_P(DeviceCopierSteadyTest, UnknownUseWaitsForAllWorkOfTheDevice) {
  CopierSetupOptions options;
  thread_local bool letting_go = false;
  std::atomic<int> calls{0};
  options.hook = [&calls](DeviceCall) -> Status {
    calls += letting_go ? 1 : 0;
    return {};
  };
  CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  std::deque<ReadBatch> reads;
  for (int i = 0; i < Effort(500); ++i) {
    DeviceBatch batch = setup.Next();
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
  EXPECT_GT(setup.device->count(DeviceCall::kRecordAll), Effort(500) / 2);
  EXPECT_EQ(setup.device->count(DeviceCall::kSynchronizeAll), 0);
}

// Each thread has a default stream of its own, so recording it on another thread says nothing.
TEST_P(DeviceCopierSteadyTest, UseOnAPerThreadDefaultStreamRecordsAllStreams) {
  const DeviceStream threads_own{reinterpret_cast<void*>(uintptr_t{2})};
  CopierSetup setup(GetParam());
  for (int i = 0; i < 20; ++i) {
    DeviceBatch batch = setup.Next();
    if (!batch) continue;
    batch.WaitOn(threads_own).value();
    std::thread([moved = std::move(batch)] {}).join();
  }
  EXPECT_GT(setup.device->count(DeviceCall::kRecordAll), 0);
}

TEST_P(DeviceCopierSteadyTest, SeveralDeviceCopiersShareADevice) {
  const auto device = std::make_shared<HookedDevice>(GetParam().MakeDelayed());
  {
    std::vector<std::thread> consumers;
    for (int consumer = 0; consumer < 4; ++consumer) {
      consumers.emplace_back([&, consumer] {
        CopierSetupOptions options;
        options.buffers = 2 + consumer;
        options.has_deferred_ops = consumer % 2 == 0;
        options.host.epoch_rows = 1 << 30;
        CopierSetup setup(device, options);
        StreamReader reader(device);
        for (int i = 0; i < Effort(300); ++i) {
          const DeviceBatch batch = setup.Next();
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

TEST_P(DeviceCopierSteadyTest, StatsCountCopies) {
  CopierSetupOptions options;
  options.host.epoch_rows = 16 * 5 + 3;
  options.across_epochs = false;
  options.host.one_slab = false;  // so that nothing lies between columns
  CopierSetup setup(GetParam(), options);
  EXPECT_EQ(setup.copier->Stats().batches, 0U);
  while (setup.Next()) {
  }
  const DeviceCopyStats stats = setup.copier->Stats();
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

TEST_P(DeviceCopierSteadyTest, TracesItsWork) {
  const auto listener = std::make_shared<Names>();
  CopierSetup setup(GetParam());
  Trace trace;
  ASSERT_TRUE(trace.Listen(this, listener));
  testing::FakeHostBatches source;
  {
    DeviceCopier traced(setup.ring, source,
                        {.across_epochs = true, .patience = {}, .trace = &trace});
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(traced.Next().ok());
  }
  const std::vector<std::string> spans = listener->names();
  EXPECT_THAT(spans, ::testing::Contains("stoker.copy"));
  EXPECT_THAT(spans, ::testing::Contains("stoker.stage.host"));
  EXPECT_THAT(spans, ::testing::Contains("stoker.stage.ring"));
}

}  // namespace
}  // namespace stoker
