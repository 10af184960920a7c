// Stopping at any moment, from any thread, in any process, is clean and quick.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/numbers/random.h"
#include "engine/loader/loader.h"
#include "engine/production/producer.h"
#include "tests/testing/effort.h"
#include "tests/testing/process/child_process.h"
#include "tests/testing/process/process_usage.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::Effort;
using ::stoker::testing::ExecutorsUnderTest;
using ::stoker::testing::ExitCodeOfChild;
using ::stoker::testing::LiveThreads;
using ::stoker::testing::LiveThreadsDownTo;
using ::stoker::testing::OpenDescriptors;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::TakeEpoch;

LoaderOptions Options(const PhotoFolder& photos, const RuntimeOptions& runtime) {
  LoaderOptions options;
  options.source = photos.Source();
  options.transforms = {RandomResizedCrop{.height = 32, .width = 32}};
  options.batch_size = 4;
  options.runtime = Runtime::Create(runtime).value();
  return options;
}

// Returns the number of threads that stay: the same for 20 looks in a row.
int LiveThreadsAtRest() {
  int threads = LiveThreads();
  for (int looks = 0; looks < 20; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const int now = LiveThreads();
    if (now != threads) looks = 0;
    threads = now;
  }
  return threads;
}

// 60 moments with each executor; fewer if Effort is less than full.
TEST(ProducerEnd, StopsAtAnyMomentWithoutLeakingThreadsOrDescriptors) {
  const PhotoFolder photos(40, 2);
  const int rounds = Effort(60);
  RandomStream random({11, 0, 0}, 0);
  for (testing::TestedExecutor executor : ExecutorsUnderTest()) {
    const auto run = [&](int round) {
      RuntimeOptions runtime;
      runtime.threads = 1 + static_cast<int>(random.Below(4));
      testing::SetExecutor(executor, runtime);
      runtime.reader_threads = 1 + static_cast<int>(random.Below(2));
      LoaderOptions options = Options(photos, runtime);
      options.depth = 1 + static_cast<int>(random.Below(6));
      auto loader = Producer::Open(options).value();
      Batch held;
      for (uint64_t n = random.Below(12); n > 0; --n) held = loader->Next().value();
      std::this_thread::sleep_for(std::chrono::microseconds(random.Below(2000)));
      if (round % 3 == 0) loader->Stop();
      if (round % 3 == 1) (void)loader->Seek({random.Below(5), random.Below(10)});
    };
    run(0);  // libraries start threads of their own that stay
    const int descriptors = OpenDescriptors();
    const int threads = LiveThreadsAtRest();
    for (int round = 0; round < rounds; ++round) run(round);
    EXPECT_EQ(OpenDescriptors(), descriptors);
    if (executor !=
        testing::TestedExecutor::kTbb) {  // TBB keeps its pool of threads for the process
      EXPECT_LE(LiveThreadsDownTo(threads), threads);  // fewer: some of TBB's have left
    }
  }
}

TEST(ProducerEnd, StopWakesABlockedConsumer) {
  const PhotoFolder photos(8, 1);
  RuntimeOptions runtime;
  for (int round = 0; round < 20; ++round) {
    auto loader = Producer::Open(Options(photos, runtime)).value();
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
      loader->Stop();
    });
    while (true) {
      const Result<Batch> batch = loader->Next();
      if (batch.ok()) continue;
      EXPECT_EQ(batch.error().code, Code::kCancelled);
      break;
    }
    stopper.join();
    EXPECT_EQ(loader->Next().error().code, Code::kCancelled) << "and it stays stopped";
    loader->Stop();  // twice does no harm
  }
}

TEST(ProducerEnd, StatsMayBeReadOnAnotherThread) {
  const PhotoFolder photos(20, 1);
  RuntimeOptions runtime;
  auto loader = Producer::Open(Options(photos, runtime)).value();
  std::atomic<bool> done{false};
  std::thread observer([&] {
    while (!done) {
      const LoaderStats stats = loader->Stats();
      EXPECT_LE(stats.memory_used, stats.memory_budget);
    }
  });
  for (int epoch = 0; epoch < 10; ++epoch) EXPECT_EQ(TakeEpoch(*loader).size(), 5u);
  done = true;
  observer.join();
  const LoaderStats stats = loader->Stats();
  EXPECT_EQ(stats.batches, 50u);
  EXPECT_GE(stats.samples, 200u);
}

TEST(ProducerEnd, AForkedChildIsRefusedAndMayOpenItsOwn) {
  const PhotoFolder photos(8, 1);
  RuntimeOptions runtime;
  auto loader = Loader::Open(Options(photos, runtime)).value();
  auto iterator = loader->Iterate();
  Batch held = iterator->Next().value();
  EXPECT_EQ(ExitCodeOfChild([&] {
              const Result<Batch> batch = iterator->Next();
              if (batch.ok() || batch.error().code != Code::kFailedPrecondition) return 1;
              if (loader->Iterate()->Next().ok()) return 2;
              loader->Stop();
              const LoaderStats stats = loader->Stats();
              if (stats.batches != 0 || stats.threads != 0) return 3;  // not counted by the parent
              held.Release();
              iterator.reset();
              loader.reset();  // touches no thread of the parent
              return 0;
            }),
            0);
  EXPECT_EQ(loader->Stats().lent_batches, 1) << "the child's release was its own";
  EXPECT_TRUE(iterator->Next().ok()) << "the parent goes on";
}

// TBB's workers do not exist in the child, and it would start no others. (ThreadSanitizer does not
// let a child of a process with several threads start threads.)
TEST(ProducerEnd, AForkedChildsOwnLoadersWork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "forks with threads, and uses TBB";
#endif
  const PhotoFolder photos(8, 1);
  RuntimeOptions runtime;
  auto loader = Producer::Open(Options(photos, runtime)).value();
  ASSERT_EQ(TakeEpoch(*loader).size(), 2u);
  LoaderOptions with_default = Options(photos, runtime);
  with_default.runtime = Runtime::Default().value();
  auto other = Producer::Open(with_default).value();
  ASSERT_EQ(TakeEpoch(*other).size(), 2u);
  with_default.runtime.reset();
  EXPECT_EQ(ExitCodeOfChild([&] {
              auto own = Producer::Open(Options(photos, runtime)).value();
              if (TakeEpoch(*own).size() != 2) return 1;
              auto shared = Producer::Open(with_default).value();
              if (TakeEpoch(*shared).size() != 2) return 2;
              if (shared->Stats().executor != "threads") return 3;
              return ExitCodeOfChild([&] {
                const Result<Batch> batch = shared->Next();
                return !batch.ok() && batch.error().code == Code::kFailedPrecondition ? 4 : 5;
              });
            }),
            4)
      << "a child of its own is told";
  EXPECT_EQ(TakeEpoch(*loader).size(), 2u) << "the parent goes on";
}

}  // namespace
}  // namespace stoker
