// A copier can be stopped in every state, from any thread, and then returns every host batch.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
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
using ::stoker::testing::HookedDevice;
using ::stoker::testing::Random;
using ::stoker::testing::ReadBatch;
using ::stoker::testing::StreamReader;

class DeviceCopierStopTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, DeviceCopierStopTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

void ExpectStopped(DeviceCopier& copier) {
  for (int i = 0; i < 2; ++i) {
    const Result<DeviceBatch> none = copier.Next();
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, Code::kCancelled);
  }
}

// Ends the copier, and checks that nothing is left.
void ExpectNothingLeft(std::unique_ptr<CopierSetup> setup) {
  const std::shared_ptr<HookedDevice> device = setup->device;
  setup->copier.reset();
  setup->ring.reset();
  EXPECT_EQ(setup->source.lent(), 0);
  setup.reset();
  EXPECT_EQ(device->alive(), 0);
}

// A source that gives nothing until it is interrupted; it reports when it is asked.
CopierSetupOptions WithoutEnd(std::atomic<bool>& asked) {
  CopierSetupOptions options;
  options.host.before = [&](uint64_t, uint64_t index, const Interrupt& interrupt) -> Status {
    if (index < 2) return {};
    asked = true;
    while (!interrupt()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Error{Code::kCancelled, "interrupted"};
  };
  return options;
}

TEST_P(DeviceCopierStopTest, StopsBeforeTheFirstNext) {
  auto setup = std::make_unique<CopierSetup>(GetParam());
  setup->copier->Stop();
  setup->copier->Stop();
  ExpectStopped(*setup->copier);
  ExpectNothingLeft(std::move(setup));
  ExpectNothingLeft(std::make_unique<CopierSetup>(GetParam()));
}

TEST_P(DeviceCopierStopTest, StopsWhileWaitingForTheHost) {
  for (const bool in_next : {false, true}) {
    std::atomic<bool> asked{false};
    auto setup = std::make_unique<CopierSetup>(GetParam(), WithoutEnd(asked));
    EXPECT_TRUE(setup->Next());
    EXPECT_TRUE(setup->Next());
    Await([&] { return asked.load(); });
    if (in_next) {
      std::thread stopper([&] { setup->copier->Stop(); });
      ExpectStopped(*setup->copier);
      stopper.join();
    }
    ExpectNothingLeft(std::move(setup));
  }
}

TEST_P(DeviceCopierStopTest, StopsFromTheInterruptOfNext) {
  std::atomic<bool> asked{false};
  auto setup = std::make_unique<CopierSetup>(GetParam(), WithoutEnd(asked));
  EXPECT_TRUE(setup->Next());
  EXPECT_TRUE(setup->Next());
  const Result<DeviceBatch> none = setup->copier->Next([&] {
    setup->copier->Stop();
    return false;
  });
  EXPECT_EQ(none.error().code, Code::kCancelled);
  ExpectNothingLeft(std::move(setup));
}

TEST_P(DeviceCopierStopTest, StopsWhileWaitingForTheRing) {
  for (const bool stop : {false, true}) {
    auto setup = std::make_unique<CopierSetup>(GetParam());
    StreamReader reader(setup->device);
    std::vector<DeviceBatch> held;
    for (int i = 0; i < 3; ++i) held.push_back(setup->Next());
    if (stop) {
      std::thread([&] { setup->copier->Stop(); }).join();
      ExpectStopped(*setup->copier);
    }
    setup->copier.reset();
    for (int i = 0; i < 3; ++i) ExpectRight(reader, held[i], 0, i);
    held.clear();
    ExpectNothingLeft(std::move(setup));
  }
}

TEST_P(DeviceCopierStopTest, StopsWithBatchesNotTaken) {
  auto setup = std::make_unique<CopierSetup>(GetParam());
  EXPECT_TRUE(setup->Next());
  Await([&] { return setup->copier->Stats().batches >= 3; });
  ExpectNothingLeft(std::move(setup));
}

TEST_P(DeviceCopierStopTest, StopsWhilePausedAtAnEpochsEndOrAnError) {
  for (const bool error : {false, true}) {
    CopierSetupOptions options;
    options.across_epochs = false;
    options.host.epoch_rows = 0;
    options.host.before = [error](uint64_t, uint64_t, const Interrupt&) -> Status {
      if (error) return Error{Code::kDataLoss, "bad"};
      return {};
    };
    auto setup = std::make_unique<CopierSetup>(GetParam(), options);
    EXPECT_EQ(setup->copier->Next().ok(), !error);
    ExpectNothingLeft(std::move(setup));
  }
}

// The copier has gone round the ring, and copies are held up by a consumer that lags far. The
// ring waits for it; the copier ends at once.
TEST_P(DeviceCopierStopTest, StopsWhileWaitingForACopy) {
  CopierSetupOptions options;
  options.host.epoch_rows = 1 << 30;
  auto setup = std::make_unique<CopierSetup>(GetParam(), options);
  StreamReader reader(setup->device);
  Device& device = *setup->device->inner();
  constexpr uint64_t kFarBehind = 3'000'000'000;
  const DeviceEvent caught_up = device.MakeEvent().value();
  device.Occupy(kFarBehind, reader.stream()).value();
  device.Record(caught_up, reader.stream()).value();
  for (int i = 0; i < 6; ++i) setup->Next().WaitOn(reader.stream()).value();
  const Result<DeviceBatch> none = setup->copier->Next([] { return true; });
  EXPECT_EQ(none.error().code, Code::kCancelled) << "interrupted: there is none yet";
  setup->copier->Stop();
  ExpectStopped(*setup->copier);
  setup->copier.reset();
  EXPECT_FALSE(device.IsDone(caught_up).value()) << "nobody has waited for that";
  EXPECT_GT(setup->source.lent(), 0) << "and its copies have not begun";
  ExpectNothingLeft(std::move(setup));
  device.Destroy(caught_up);
}

// The source, the consumer and the stopper run on threads of their own, with random delays.
TEST_P(DeviceCopierStopTest, StopsAtAnyMomentFromAnotherThread) {
  Random random(5);
  for (int round = 0; round < Effort(200); ++round) {
    CopierSetupOptions options;
    options.across_epochs = random.OneIn(2);
    options.has_deferred_ops = random.OneIn(2);
    options.buffers = random.Between(2, 5);
    auto setup = std::make_unique<CopierSetup>(GetParam(), options);
    const int delay = random.Between(0, 2000);
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      setup->copier->Stop();
    });
    {
      StreamReader reader(setup->device);
      ReadBatch read;
      while (true) {
        Result<DeviceBatch> batch = setup->copier->Next();
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
    ExpectNothingLeft(std::move(setup));
  }
}

TEST_P(DeviceCopierStopTest, ARingServesOneDeviceCopierAfterTheOther) {
  CopierSetup setup(GetParam());
  StreamReader reader(setup.device);
  std::vector<DeviceBatch> held;
  held.push_back(setup.Next());
  for (int i = 0; i < Effort(50); ++i) {
    setup.copier.reset();
    testing::FakeHostBatches again;
    DeviceCopier next(setup.ring, again, {.across_epochs = true, .patience = {}});
    for (uint64_t index = 0; index < 4; ++index) {
      ExpectRight(reader, next.Next().value(), 0, index);
    }
  }
  ExpectRight(reader, held[0], 0, 0);
}

// The parent's thread, streams and memory are not the child's. (ThreadSanitizer does not follow a
// program of several threads into a fork.)
TEST_P(DeviceCopierStopTest, AForkedChildIsRefusedAndEnds) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "forks with threads";
#endif
  auto setup = std::make_unique<CopierSetup>(GetParam());
  StreamReader reader(setup->device);  // there until all that it read has been let go of
  DeviceBatch batch = setup->Next();
  const pid_t child = fork();
  if (child == 0) {
    bool right = setup->copier->Next().error().code == Code::kFailedPrecondition;
    right = right && batch.WaitOn({}).error().code == Code::kFailedPrecondition;
    right = right && batch.Wait().error().code == Code::kFailedPrecondition;
    batch.MarkUntracked();
    right = right && batch.GiveTo({}).error().code == Code::kFailedPrecondition;
    right = right && batch.RecordStream({}).error().code == Code::kFailedPrecondition;
    setup->copier->Stop();
    setup.reset();
    batch.Release();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ExpectRight(reader, batch, 0, 0);
  ExpectRight(reader, setup->Next(), 0, 1);
}

}  // namespace
}  // namespace stoker
