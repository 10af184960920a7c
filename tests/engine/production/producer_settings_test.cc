// Settings that change while a loader runs must not change the batches.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <thread>

#include "engine/memory/memory_manager.h"
#include "engine/production/producer.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::Effort;
using ::stoker::testing::ExecutorsUnderTest;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::TakeEpoch;

class ProducerSettings : public ::testing::TestWithParam<testing::TestedExecutor> {
 protected:
  static void SetUpTestSuite() { photos_ = new PhotoFolder(61, 4); }
  static void TearDownTestSuite() { delete photos_; }

  static LoaderOptions Options(std::shared_ptr<Runtime> runtime) {
    LoaderOptions options;
    options.source = photos_->Source();
    options.transforms = {RandomResizedCrop{.height = 32, .width = 24}, RandomHorizontalFlip{}};
    options.batch_size = 4;
    options.shuffle = true;
    options.seed = 5;
    options.runtime = std::move(runtime);
    return options;
  }

  // No setting is fixed.
  static std::shared_ptr<Runtime> Tuned(uint64_t budget = 0) {
    RuntimeOptions options = RuntimeUnderTest(0);
    testing::SetExecutor(GetParam(), options);
    options.memory_budget = budget;
    return Runtime::Create(options).value();
  }

  // Eight batches at once, then a pause that is long enough to make many more of them.
  static void Burst(Producer& loader) {
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(loader.Next().ok());
    std::this_thread::sleep_for(3 * (std::chrono::steady_clock::now() - begun));
  }

  // Takes bursts until the tuner has made the loader deeper, because bursts need depth. `each`:
  // called after each burst.
  static void BurstsUntilDeeper(
      Producer& loader, const std::function<void()>& each = [] {}) {
    const int before = loader.Stats().depth;
    for (int i = 0; i < 2000 && loader.Stats().depth <= before; ++i) {
      Burst(loader);
      each();
    }
    ASSERT_GT(loader.Stats().depth, before);
    ASSERT_GT(loader.Stats().decisions_made, 0u);
  }

  static PhotoFolder* photos_;
};
PhotoFolder* ProducerSettings::photos_ = nullptr;

// Another loader, whose needs jump, takes workers and memory away and gives them back.
TEST_P(ProducerSettings, BatchesDoNotDependOnOtherLoaders) {
  const auto reference =
      Producer::Open(Options(Runtime::Create(RuntimeUnderTest(1)).value())).value();
  const std::shared_ptr<Runtime> runtime = Tuned();
  const auto loader = Producer::Open(Options(runtime)).value();
  const auto other = runtime->memory().Lease({.slot_bytes = 1}, 1).value();
  testing::Random random(3);
  for (int epoch = 0; epoch < Effort(30); ++epoch) {
    other->SetNeed({.workers = static_cast<uint64_t>(random.Between(0, 4)),
                    .batch_bytes = random.OneIn(2) ? runtime->budget().limit() : 0},
                   /*now_ns=*/1);
    EXPECT_EQ(TakeEpoch(*loader), TakeEpoch(*reference));
    EXPECT_LE(runtime->budget().used(), runtime->budget().limit());
  }
  EXPECT_GT(loader->Stats().decisions_made, 0u);
}

TEST_P(ProducerSettings, FixedSettingsStay) {
  RuntimeOptions given = RuntimeUnderTest(3);
  testing::SetExecutor(GetParam(), given);
  given.reads_in_flight = 5;
  LoaderOptions options = Options(Runtime::Create(given).value());
  options.depth = 3;
  const auto loader = Producer::Open(options).value();
  const auto tuned = Producer::Open(Options(Tuned())).value();
  BurstsUntilDeeper(*tuned, [&] { Burst(*loader); });
  const LoaderStats stats = loader->Stats();
  EXPECT_EQ(stats.depth, 3);
  EXPECT_EQ(stats.workers, 3);
  EXPECT_EQ(stats.reads, 5);
  EXPECT_EQ(stats.decisions_made, 0u);
}

TEST_P(ProducerSettings, MemoryFollowsTheDepth) {
  const std::shared_ptr<Runtime> runtime = Tuned();
  const auto loader = Producer::Open(Options(runtime)).value();
  BurstsUntilDeeper(*loader, [&] {
    const LoaderStats stats = loader->Stats();
    // Batches in production, read buffers, a workspace for each worker; files are small.
    const uint64_t most =
        static_cast<uint64_t>(stats.depth + 1) * stats.slot_bytes +
        static_cast<uint64_t>(stats.reads + 3 * stats.workers) * (kReadBufferBytes + (8 << 10)) +
        static_cast<uint64_t>(stats.threads) * (kWorkspaceBytes + (2 << 20));
    EXPECT_LE(stats.memory_used, most);
  });
}

// The loader ends right after its settings have changed, with `round` further batches taken.
TEST_P(ProducerSettings, EndsWhileBeingTuned) {
  for (int round = 0; round < Effort(5); ++round) {
    const auto loader = Producer::Open(Options(Tuned())).value();
    BurstsUntilDeeper(*loader);
    for (int i = 0; i < round; ++i) ASSERT_TRUE(loader->Next().ok());
  }
}

TEST_P(ProducerSettings, SeekKeepsTunedSettings) {
  const auto loader = Producer::Open(Options(Tuned())).value();
  BurstsUntilDeeper(*loader);
  const int depth = loader->Stats().depth;
  ASSERT_TRUE(loader->Seek({0, 0}).ok());
  EXPECT_EQ(loader->Stats().depth, depth);
  (void)TakeEpoch(*loader);
}

INSTANTIATE_TEST_SUITE_P(All, ProducerSettings, ::testing::ValuesIn(ExecutorsUnderTest()));

TEST(TuningOptions, RefusesWaitTargetAndWeightOutOfRange) {
  LoaderOptions options;
  options.source = PhotoFolder(4, 1).Source();
  options.transforms = {Resize{32}, CenterCrop{32, 32}};
  options.wait_target = 0;
  EXPECT_EQ(Producer::Open(options).error().code, Code::kInvalidArgument);
  options.wait_target = 0.005;
  for (double weight : {0.0, -1.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    options.weight = weight;
    EXPECT_EQ(Producer::Open(options).error().code, Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace stoker
