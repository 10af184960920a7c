// A stager can be stopped whatever it is doing, from any thread, and returns every host batch.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "tests/gpu/staging/staging.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using ::stoker::testing::Await;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::Random;
using ::stoker::testing::ReadBatch;
using ::stoker::testing::Staging;
using ::stoker::testing::StagingOptions;
using ::stoker::testing::StreamReader;

class StagerStopTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, StagerStopTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

void ExpectStopped(Stager& stager) {
  for (int i = 0; i < 2; ++i) {
    const Result<DeviceBatch> none = stager.Next();
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, Code::kCancelled);
  }
}

// Ends the stager, and checks that nothing is left.
void ExpectNothingLeft(std::unique_ptr<Staging> staging) {
  const std::shared_ptr<HookedDevice> device = staging->device;
  staging->stager.reset();
  staging->ring.reset();
  EXPECT_EQ(staging->source.lent(), 0);
  staging.reset();
  EXPECT_EQ(device->alive(), 0);
}

// A source that gives nothing until it is interrupted; it reports when it is asked.
StagingOptions WithoutEnd(std::atomic<bool>& asked) {
  StagingOptions options;
  options.host.before = [&](uint64_t, uint64_t index, const Interrupt& interrupt) -> Status {
    if (index < 2) return {};
    asked = true;
    while (!interrupt()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Error{Code::kCancelled, "interrupted"};
  };
  return options;
}

TEST_P(StagerStopTest, StopsBeforeTheFirstNext) {
  auto staging = std::make_unique<Staging>(GetParam());
  staging->stager->Stop();
  staging->stager->Stop();
  ExpectStopped(*staging->stager);
  ExpectNothingLeft(std::move(staging));
  ExpectNothingLeft(std::make_unique<Staging>(GetParam()));
}

TEST_P(StagerStopTest, StopsWhileWaitingForTheHost) {
  for (const bool in_next : {false, true}) {
    std::atomic<bool> asked{false};
    auto staging = std::make_unique<Staging>(GetParam(), WithoutEnd(asked));
    EXPECT_TRUE(staging->Next());
    EXPECT_TRUE(staging->Next());
    Await([&] { return asked.load(); });
    if (in_next) {
      std::thread stopper([&] { staging->stager->Stop(); });
      ExpectStopped(*staging->stager);
      stopper.join();
    }
    ExpectNothingLeft(std::move(staging));
  }
}

TEST_P(StagerStopTest, StopsFromTheInterruptOfNext) {
  std::atomic<bool> asked{false};
  auto staging = std::make_unique<Staging>(GetParam(), WithoutEnd(asked));
  EXPECT_TRUE(staging->Next());
  EXPECT_TRUE(staging->Next());
  const Result<DeviceBatch> none = staging->stager->Next([&] {
    staging->stager->Stop();
    return false;
  });
  EXPECT_EQ(none.error().code, Code::kCancelled);
  ExpectNothingLeft(std::move(staging));
}

TEST_P(StagerStopTest, StopsWhileWaitingForTheRing) {
  for (const bool stop : {false, true}) {
    auto staging = std::make_unique<Staging>(GetParam());
    StreamReader reader(staging->device);
    std::vector<DeviceBatch> held;
    for (int i = 0; i < 3; ++i) held.push_back(staging->Next());
    if (stop) {
      std::thread([&] { staging->stager->Stop(); }).join();
      ExpectStopped(*staging->stager);
    }
    staging->stager.reset();
    for (int i = 0; i < 3; ++i) ExpectRight(reader, held[i], 0, i);
    held.clear();
    ExpectNothingLeft(std::move(staging));
  }
}

TEST_P(StagerStopTest, StopsWithBatchesNotTaken) {
  auto staging = std::make_unique<Staging>(GetParam());
  EXPECT_TRUE(staging->Next());
  Await([&] { return staging->stager->Stats().batches >= 3; });
  ExpectNothingLeft(std::move(staging));
}

TEST_P(StagerStopTest, StopsWhilePausedAtAnEpochsEndOrAnError) {
  for (const bool error : {false, true}) {
    StagingOptions options;
    options.across_epochs = false;
    options.host.epoch_rows = 0;
    options.host.before = [error](uint64_t, uint64_t, const Interrupt&) -> Status {
      if (error) return Error{Code::kDataLoss, "bad"};
      return {};
    };
    auto staging = std::make_unique<Staging>(GetParam(), options);
    EXPECT_EQ(staging->stager->Next().ok(), !error);
    ExpectNothingLeft(std::move(staging));
  }
}

// The stager has gone round the ring, and copies are held up by a consumer that lags far. The
// ring waits for it; the stager ends at once.
TEST_P(StagerStopTest, StopsWhileWaitingForACopy) {
  StagingOptions options;
  options.host.epoch_rows = 1 << 30;
  auto staging = std::make_unique<Staging>(GetParam(), options);
  StreamReader reader(staging->device);
  Device& device = *staging->device->inner();
  constexpr uint64_t kFarBehind = 3'000'000'000;
  const DeviceEvent caught_up = device.MakeEvent().value();
  device.Occupy(kFarBehind, reader.stream()).value();
  device.Record(caught_up, reader.stream()).value();
  for (int i = 0; i < 6; ++i) staging->Next().WaitOn(reader.stream()).value();
  const Result<DeviceBatch> none = staging->stager->Next([] { return true; });
  EXPECT_EQ(none.error().code, Code::kCancelled) << "interrupted: there is none yet";
  staging->stager->Stop();
  ExpectStopped(*staging->stager);
  staging->stager.reset();
  EXPECT_FALSE(device.Done(caught_up).value()) << "nobody has waited for that";
  EXPECT_GT(staging->source.lent(), 0) << "and its copies have not begun";
  ExpectNothingLeft(std::move(staging));
  device.Destroy(caught_up);
}

// The source, the consumer and the stopper run on threads of their own, with random delays.
TEST_P(StagerStopTest, StopsAtAnyMomentFromAnotherThread) {
  Random random(5);
  for (int round = 0; round < Effort(200); ++round) {
    StagingOptions options;
    options.across_epochs = random.OneIn(2);
    options.has_deferred_ops = random.OneIn(2);
    options.buffers = random.Between(2, 5);
    auto staging = std::make_unique<Staging>(GetParam(), options);
    const int delay = random.Between(0, 2000);
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      staging->stager->Stop();
    });
    {
      StreamReader reader(staging->device);
      ReadBatch read;
      while (true) {
        Result<DeviceBatch> batch = staging->stager->Next();
        if (!batch.ok()) {
          EXPECT_EQ(batch.error().code, Code::kCancelled);
          break;
        }
        if (!*batch) continue;
        ReadBatch& to = read;
        reader.Issue(*batch, to).value();
        batch->Release();
        reader.Await();
        ExpectRight(to);
      }
    }
    stopper.join();
    ExpectNothingLeft(std::move(staging));
  }
}

TEST_P(StagerStopTest, ARingServesOneStagerAfterTheOther) {
  Staging staging(GetParam());
  StreamReader reader(staging.device);
  std::vector<DeviceBatch> held;
  held.push_back(staging.Next());
  for (int i = 0; i < Effort(50); ++i) {
    staging.stager.reset();
    testing::FakeHostBatches again;
    Stager next(staging.ring, again, {.across_epochs = true, .patience = {}});
    for (uint64_t index = 0; index < 4; ++index) {
      ExpectRight(reader, next.Next().value(), 0, index);
    }
  }
  ExpectRight(reader, held[0], 0, 0);
}

// The parent's thread, streams and memory are not the child's. (ThreadSanitizer does not follow a
// program of several threads into a fork.)
TEST_P(StagerStopTest, AForkedChildIsRefusedAndEnds) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "forks with threads";
#endif
  auto staging = std::make_unique<Staging>(GetParam());
  StreamReader reader(staging->device);  // there until all that it read has been let go of
  DeviceBatch batch = staging->Next();
  const pid_t child = fork();
  if (child == 0) {
    bool right = staging->stager->Next().error().code == Code::kFailedPrecondition;
    right = right && batch.WaitOn({}).error().code == Code::kFailedPrecondition;
    right = right && batch.Wait().error().code == Code::kFailedPrecondition;
    batch.MarkUntracked();
    right = right && batch.GiveTo({}).error().code == Code::kFailedPrecondition;
    right = right && batch.RecordStream({}).error().code == Code::kFailedPrecondition;
    staging->stager->Stop();
    staging.reset();
    batch.Release();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ExpectRight(reader, batch, 0, 0);
  ExpectRight(reader, staging->Next(), 0, 1);
}

}  // namespace
}  // namespace stoker
