// Next waits for and reports an exhausted ring, ends of epochs, errors of the source and
// interrupts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/gpu/staging/copier_setup.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using ::stoker::testing::Await;
using ::stoker::testing::CopierSetup;
using ::stoker::testing::CopierSetupOptions;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::PlanOf;
using ::stoker::testing::Random;
using ::stoker::testing::StreamReader;
using ::testing::HasSubstr;

class DeviceCopierWaitTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, DeviceCopierWaitTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

TEST_P(DeviceCopierWaitTest, HoldingAllEntriesIsAnErrorThatLosesNothing) {
  for (const int buffers : {2, 3, 7}) {
    CopierSetupOptions options;
    options.buffers = buffers;
    options.host.epoch_rows = 16 * 40;
    CopierSetup setup(GetParam(), options);
    StreamReader reader(setup.device);
    std::vector<DeviceBatch> held;
    for (int i = 0; i < buffers; ++i) held.push_back(setup.Next());
    for (int tries = 0; tries < 3; ++tries) {
      const Result<DeviceBatch> none = setup.copier->Next();
      ASSERT_FALSE(none.ok());
      EXPECT_EQ(none.error().code, Code::kResourceExhausted);
      EXPECT_THAT(none.error().cause, HasSubstr("holds " + std::to_string(buffers) + " batches"));
      EXPECT_THAT(none.error().advice, HasSubstr("Release"));
      EXPECT_THAT(none.error().advice, HasSubstr("buffers"));
    }
    for (int i = 0; i < buffers; ++i) ExpectRight(reader, held[i], 0, i);
    held[1].Release();
    held[1] = setup.Next();
    ExpectRight(reader, held[1], 0, buffers);
    EXPECT_EQ(setup.copier->Next().error().code, Code::kResourceExhausted);
    held.clear();
    for (int i = buffers + 1; i < 40; ++i) ExpectRight(reader, setup.Next(), 0, i);
    EXPECT_FALSE(setup.Next());
  }
}

// Copies of a batch share its entry.
TEST_P(DeviceCopierWaitTest, AnOwnerHoldsAnEntryOnce) {
  CopierSetupOptions options;
  options.buffers = 2;
  CopierSetup setup(GetParam(), options);
  DeviceBatch batch = setup.Next();
  std::vector<std::shared_ptr<const RingEntry>> owners(5, batch.Owner());
  const DeviceBatch other = setup.Next();
  batch.Release();
  EXPECT_EQ(setup.copier->Next().error().code, Code::kResourceExhausted);
  owners.clear();
  EXPECT_TRUE(setup.Next());
}

TEST_P(DeviceCopierWaitTest, StagesTheNextEpochBeforeTheEndIsTaken) {
  std::atomic<uint64_t> asked_of{0};
  CopierSetupOptions options;
  options.buffers = 8;
  options.host.before = [&](uint64_t epoch, uint64_t, const Interrupt&) {
    asked_of = epoch;
    return Status();
  };
  CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  ExpectRight(reader, setup.Next(), 0, 0);
  Await([&] { return asked_of.load() == 1; });
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    for (uint64_t i = epoch == 0 ? 1 : 0; i < 6; ++i) ExpectRight(reader, setup.Next(), epoch, i);
    EXPECT_FALSE(setup.Next());
  }
}

TEST_P(DeviceCopierWaitTest, PausesAtAnEpochsEndUnlessAcrossEpochs) {
  std::atomic<uint64_t> asked_of{0};
  CopierSetupOptions options;
  options.buffers = 8;
  options.across_epochs = false;
  options.host.before = [&](uint64_t epoch, uint64_t, const Interrupt&) {
    asked_of = epoch;
    return Status();
  };
  CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    for (uint64_t i = 0; i < 6; ++i) {
      ExpectRight(reader, setup.Next(), epoch, i);
      EXPECT_EQ(asked_of, epoch);
    }
    EXPECT_FALSE(setup.Next());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(asked_of, epoch);
  }
}

// The ring does not bound ends and errors, so the copier waits until each is taken.
TEST_P(DeviceCopierWaitTest, EmptyEpochsDoNotPileUp) {
  for (const bool across_epochs : {true, false}) {
    std::atomic<uint64_t> asked{0};
    CopierSetupOptions options;
    options.across_epochs = across_epochs;
    options.host.epoch_rows = 0;
    options.host.before = [&](uint64_t, uint64_t, const Interrupt&) {
      ++asked;
      return Status();
    };
    CopierSetup setup(GetParam(), options);
    for (uint64_t taken = 1; taken <= 100; ++taken) {
      EXPECT_FALSE(setup.Next());
      EXPECT_LE(asked, taken + 1);
    }
  }
}

TEST_P(DeviceCopierWaitTest, ASourceErrorReplacesItsBatch) {
  for (const bool across_epochs : {true, false}) {
    CopierSetupOptions options;
    options.across_epochs = across_epochs;
    options.host.before = [](uint64_t epoch, uint64_t index, const Interrupt&) -> Status {
      if ((epoch + index) % 3 != 1) return {};
      return Error{.code = Code::kDataLoss, .cause = "bad", .file = std::to_string(index)};
    };
    CopierSetup setup(GetParam(), options);
    StreamReader reader(setup.device);
    for (uint64_t epoch = 0; epoch < 30; ++epoch) {
      for (uint64_t i = 0; i <= 6; ++i) {  // the last is the end
        const Result<DeviceBatch> batch = setup.copier->Next();
        if ((epoch + i) % 3 == 1) {
          ASSERT_FALSE(batch.ok());
          EXPECT_EQ(batch.error().code, Code::kDataLoss);
          EXPECT_EQ(batch.error().file, std::to_string(i));
        } else if (i < 6) {
          ASSERT_TRUE(batch.ok());
          ExpectRight(reader, *batch, epoch, i);
        } else {
          ASSERT_TRUE(batch.ok());
          EXPECT_FALSE(*batch);
        }
      }
    }
  }
}

TEST_P(DeviceCopierWaitTest, RefusesAHostBatchThatDoesNotFit) {
  CopierSetupOptions options;
  CopierSetup setup(GetParam(), options);
  testing::HostBatchesOptions other = options.host;
  other.batch_size = 17;
  testing::FakeHostBatches larger(other);
  DeviceCopier refusing(setup.ring, larger, {.across_epochs = true, .patience = {}});
  const Result<DeviceBatch> batch = refusing.Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Code::kInvalidArgument);
  EXPECT_THAT(batch.error().cause, HasSubstr("17 rows"));
  refusing.Stop();
  EXPECT_EQ(larger.lent(), 0);
}

TEST_P(DeviceCopierWaitTest, RefusesAHostBatchWithoutTheCropsOfADeviceThatDecodes) {
  CopierSetupOptions options;
  options.has_deferred_ops = options.has_work = true;
  const CopierSetup setup(GetParam(), options);  // whose batches have none
  CopyPlan plan = PlanOf(options);
  plan.crops = {.bytes = 4096, .samples = 512};
  plan.host.insert(plan.host.end() - 1, {"crop", DType::kU64, {}});
  testing::HostBatchesOptions host = options.host;
  host.columns = plan.host;
  testing::FakeHostBatches source(host);
  DeviceCopier refusing(DeviceCopier::MakeRing(setup.device, plan, 2).value(), source);
  const Result<DeviceBatch> batch = refusing.Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().cause, "a batch with crops for 0 devices came where 1 decode");
}

TEST_P(DeviceCopierWaitTest, AnInterruptEndsTheWaitAndLosesNothing) {
  std::atomic<bool> open{false};
  CopierSetupOptions options;
  options.host.before = [&](uint64_t, uint64_t, const Interrupt& interrupt) -> Status {
    while (!open.load()) {
      if (interrupt()) return Error{Code::kCancelled, "interrupted"};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  };
  CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  for (int tries = 0; tries < 3; ++tries) {
    int asked = 0;
    const Result<DeviceBatch> none = setup.copier->Next([&] { return ++asked == 2; });
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, Code::kCancelled);
    EXPECT_EQ(asked, 2);
  }
  open = true;
  for (uint64_t i = 0; i < 6; ++i) ExpectRight(reader, setup.Next(), 0, i);
}

// Interrupts come at random while the source is slow.
TEST_P(DeviceCopierWaitTest, ManyInterruptsLoseNothing) {
  Random slow(3);  // the copier's thread only
  CopierSetupOptions options;
  options.host.before = [&](uint64_t, uint64_t, const Interrupt&) {
    if (slow.OneIn(4)) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    return Status();
  };
  CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  Random random(4);
  int interrupted = 0;
  for (uint64_t i = 0; i < 60;) {
    Result<DeviceBatch> batch = setup.copier->Next([&] { return random.OneIn(2); });
    if (!batch.ok()) {
      ASSERT_EQ(batch.error().code, Code::kCancelled);
      ++interrupted;
      continue;
    }
    const uint64_t epoch = i / 7, index = i % 7;
    ++i;
    if (index == 6) {
      EXPECT_FALSE(*batch);
    } else {
      ExpectRight(reader, *batch, epoch, index);
    }
  }
  EXPECT_GT(interrupted, 0);
}

// Another thread releases two batches while Next waits for a third.
TEST_P(DeviceCopierWaitTest, BatchesMayBeReleasedOnAnotherThreadWhileNextWaits) {
  CopierSetupOptions options;
  options.buffers = 2;
  options.host.epoch_rows = 16 * 1000;
  CopierSetup setup(GetParam(), options);
  StreamReader reader(setup.device);
  for (uint64_t i = 0; i < static_cast<uint64_t>(Effort(500)); ++i) {
    DeviceBatch batch = setup.Next();
    ExpectRight(reader, batch, 0, i);
    std::thread releaser([moved = std::move(batch)]() mutable {
      std::this_thread::yield();
      moved.Release();
    });
    releaser.join();
  }
}

}  // namespace
}  // namespace stoker
