#include "engine/production/producer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/memory/memory_plan.h"
#include "engine/runtime/runtime_with_readers.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::Effort;
using ::stoker::testing::ExecutorsUnderTest;
using ::stoker::testing::Fingerprint;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::Take;
using ::stoker::testing::TakeEpoch;
using ::stoker::testing::TakeIds;

class ProducerTest : public ::testing::Test {
 protected:
  static constexpr int kPhotos = 61;

  static void SetUpTestSuite() { photos_ = new PhotoFolder(kPhotos, 4); }
  static void TearDownTestSuite() { delete photos_; }

  static LoaderOptions Options(const RuntimeOptions& runtime = RuntimeUnderTest(2)) {
    LoaderOptions options;
    options.source = photos_->Source();
    options.transforms = {RandomResizedCrop{.height = 32, .width = 24}, RandomHorizontalFlip{}};
    options.batch_size = 8;
    options.shuffle = true;
    options.seed = 5;
    options.runtime = Runtime::Create(runtime).value();
    return options;
  }

  static std::unique_ptr<Producer> Open(LoaderOptions options) {
    return Producer::Open(std::move(options)).value();
  }

  static PhotoFolder* photos_;
};
PhotoFolder* ProducerTest::photos_ = nullptr;

std::vector<uint64_t> TakeEpochs(Producer& loader, int epochs) {
  std::vector<uint64_t> prints;
  for (int e = 0; e < epochs; ++e) {
    const auto epoch = TakeEpoch(loader);
    prints.insert(prints.end(), epoch.begin(), epoch.end());
  }
  return prints;
}

TEST_F(ProducerTest, EveryEpochHasEverySampleOnceWithItsLabel) {
  auto loader = Open(Options());
  const auto source = photos_->Source();
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<uint64_t> ids;
    uint64_t index = 0;
    while (Batch batch = loader->Next().value()) {
      EXPECT_EQ(batch.epoch(), epoch);
      EXPECT_EQ(batch.index(), index++);
      EXPECT_EQ(batch.images().shape, (std::vector<int64_t>{batch.rows(), 32, 24, 3}));
      for (int64_t row = 0; row < batch.rows(); ++row) {
        const uint64_t id = batch.sample_ids()[static_cast<size_t>(row)];
        EXPECT_EQ(batch.labels().as<int64_t>()[static_cast<size_t>(row)], source->LabelOf(id));
        ids.push_back(id);
      }
    }
    EXPECT_EQ(index, loader->batches_per_epoch());
    orders.insert(ids);
    std::sort(ids.begin(), ids.end());
    std::vector<uint64_t> all(kPhotos);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(ids, all);
  }
  EXPECT_EQ(orders.size(), 3u) << "each epoch has an order of its own";
}

// Every combination; if Effort is less than full, a quarter of the nine of threads and depth,
// different ones with the next reader.
TEST_F(ProducerTest, BytesDependOnNeitherThreadsNorDepthNorReaderNorExecutor) {
  const auto expected = TakeEpochs(*Open(Options(RuntimeUnderTest(1))), 3);
  std::vector<ReaderKind> readers = {ReaderKind::kPread};
  if (ChooseReader(ReaderKind::kUring).ok()) readers.push_back(ReaderKind::kUring);
  const int every = Effort(10) == 10 ? 1 : 4;
  int turn = 0;
  for (testing::TestedExecutor executor : ExecutorsUnderTest()) {
    for (ReaderKind reader : readers) {
      ++turn;
      for (int threads : {1, 2, 8}) {
        for (int depth : {1, 4, 16}) {
          if (turn++ % every != 0) continue;
          RuntimeOptions runtime = RuntimeUnderTest(threads);
          testing::SetExecutor(executor, runtime);
          runtime.reader = reader;
          runtime.reader_threads = 1 + depth % 3;
          LoaderOptions options = Options(runtime);
          options.depth = depth;
          auto loader = Open(options);
          ASSERT_EQ(TakeEpochs(*loader, 3), expected)
              << loader->Stats().executor << " " << loader->Stats().reader << " threads " << threads
              << " depth " << depth;
        }
      }
    }
  }
}

TEST_F(ProducerTest, AnotherSeedGivesOtherBytes) {
  LoaderOptions other = Options();
  other.seed = 6;
  EXPECT_NE(TakeEpoch(*Open(other)), TakeEpoch(*Open(Options())));
}

TEST_F(ProducerTest, RanksTogetherDeliverWhatOneRankDelivers) {
  std::vector<uint64_t> one = TakeIds(*Open(Options()));
  std::sort(one.begin(), one.end());
  for (uint32_t world : {3u, 8u}) {
    std::vector<uint64_t> all;
    for (uint32_t rank = 0; rank < world; ++rank) {
      LoaderOptions options = Options();
      options.world = world;
      options.rank = rank;
      const auto ids = TakeIds(*Open(options));
      all.insert(all.end(), ids.begin(), ids.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, one);
  }
}

TEST_F(ProducerTest, ReportsTheEndOfAnEpochOnce) {
  LoaderOptions options = Options();
  options.epochs = 2;
  auto loader = Open(options);
  EXPECT_EQ(TakeEpoch(*loader).size(), loader->batches_per_epoch());
  EXPECT_EQ(TakeEpoch(*loader).size(), loader->batches_per_epoch());
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(*loader->Next()) << "after the last epoch it stays ended";
}

TEST_F(ProducerTest, SeekResumesExactly) {
  auto whole = Open(Options());
  const auto expected = TakeEpochs(*whole, 3);
  const uint64_t per_epoch = whole->batches_per_epoch();

  auto saved = Open(Options());
  (void)Take(*saved, per_epoch + 3);
  const BatchName position = saved->position().value();
  EXPECT_EQ(position.epoch, 1u);
  EXPECT_EQ(position.index, 3u);

  auto resumed = Open(Options(RuntimeUnderTest(1)));
  ASSERT_TRUE(resumed->Seek(position).ok());
  const auto rest = TakeEpochs(*resumed, 2);
  EXPECT_EQ(rest, std::vector<uint64_t>(expected.begin() + static_cast<long>(per_epoch) + 3,
                                        expected.end()));
  ASSERT_TRUE(resumed->Seek({0, 0}).ok()) << "back to the start, in the middle of production";
  EXPECT_EQ(TakeEpochs(*resumed, 3), expected);
  EXPECT_EQ(resumed->Seek({0, per_epoch}).error().code, Code::kInvalidArgument);
}

TEST_F(ProducerTest, HoldingTooManyBatchesIsAnErrorAndNotADeadlock) {
  LoaderOptions options = Options();
  options.lent_batches = 2;
  options.depth = 1;
  auto loader = Open(options);
  std::vector<Batch> held;
  held.push_back(loader->Next().value());
  held.push_back(loader->Next().value());
  const Result<Batch> refused = loader->Next();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_NE(refused.error().ToString().find("lent_batches"), std::string::npos);
  held.pop_back();
  EXPECT_EQ(loader->Next().value().index(), 2u) << "nothing was lost by being refused";
}

TEST_F(ProducerTest, BatchesOutliveTheLoaderAndTheRuntime) {
  Batch batch;
  uint64_t print = 0;
  {
    auto loader = Open(Options());
    batch = loader->Next().value();
    print = Fingerprint(batch);
  }
  EXPECT_EQ(Fingerprint(batch), print);
}

TEST_F(ProducerTest, ABadSampleNamesItsFileAndTheNextBatchFollows) {
  const PhotoFolder photos(20, 2);
  LoaderOptions options = Options();
  options.source = photos.Source();
  options.shuffle = false;
  options.batch_size = 4;
  photos.Overwrite(5, "this is no photograph");
  photos.Overwrite(6, "");
  auto loader = Open(options);
  EXPECT_TRUE(loader->Next().ok());
  const Result<Batch> bad = loader->Next();
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().file, photos.FileOf(5));
  EXPECT_NE(bad.error().cause.find("and 1 more"), std::string::npos) << bad.error().ToString();
  EXPECT_EQ(loader->Next().value().index(), 2u);
  EXPECT_EQ(Take(*loader, 2).size(), 2u);
}

TEST_F(ProducerTest, AFileThatVanishesOrShrinksAfterListingIsNamed) {
  const PhotoFolder photos(6, 1);
  LoaderOptions options = Options();
  options.source = photos.Source();
  options.shuffle = false;
  options.batch_size = 1;
  const std::string gone = photos.FileOf(1);
  const std::string cut = photos.FileOf(2);
  ASSERT_EQ(truncate(cut.c_str(), 300), 0);
  ASSERT_EQ(unlink(gone.c_str()), 0);
  auto loader = Open(options);
  EXPECT_TRUE(loader->Next().ok());
  const Result<Batch> missing = loader->Next();
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(missing.error().file, gone);
  const Result<Batch> truncated = loader->Next();
  ASSERT_FALSE(truncated.ok());
  EXPECT_EQ(truncated.error().code, Code::kDataLoss);
  EXPECT_EQ(truncated.error().file, cut);
  EXPECT_TRUE(truncated.error().offset.has_value());
  EXPECT_TRUE(loader->Next().ok());
}

TEST_F(ProducerTest, TwoLoadersOfOneRuntimeDoNotDisturbEachOther) {
  const auto expected = TakeEpoch(*Open(Options()));
  LoaderOptions options = Options();
  auto train = Open(options);
  options.seed = 99;
  auto validation = Open(options);
  std::vector<uint64_t> prints;
  for (uint64_t i = 0; i < train->batches_per_epoch(); ++i) {
    prints.push_back(Take(*train, 1)[0]);
    (void)Take(*validation, 1);
  }
  EXPECT_EQ(prints, expected);
  validation.reset();
  EXPECT_EQ(TakeEpoch(*train).size(), 0u) << "the end of the first epoch";
  EXPECT_EQ(TakeEpoch(*train).size(), train->batches_per_epoch());
}

TEST_F(ProducerTest, ABudgetBelowOneBatchNamesTheMinimum) {
  RuntimeOptions runtime = RuntimeUnderTest(2);
  runtime.memory_budget = 100'000;
  const auto refused = Producer::Open(Options(runtime));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  const uint64_t slot = 5 * 4096 + 64;  // 8 × 32 × 24 × 3 bytes, and the labels
  const uint64_t minimum = slot + 2 * kWorkspaceBytes + 2 * kReadBufferBytes;
  EXPECT_NE(refused.error().cause.find(std::to_string(minimum)), std::string::npos)
      << refused.error().ToString();
  runtime.memory_budget = minimum;
  auto loader = Open(Options(runtime));
  EXPECT_EQ(TakeEpoch(*loader), TakeEpoch(*Open(Options())));
  EXPECT_LE(loader->Stats().memory_peak, minimum);
}

TEST_F(ProducerTest, NextReportsAReaderThatCannotBeMade) {
  const auto make_reader = []() -> Result<std::unique_ptr<Reader>> {
    return Error{Code::kResourceExhausted, "no ring today"};
  };
  LoaderOptions options = Options();
  options.runtime = RuntimeWithReaders(RuntimeUnderTest(1), make_reader).value();
  auto loader = Open(options);
  for (int i = 0; i < 2; ++i) {
    const Result<Batch> batch = loader->Next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().cause, "no ring today");
  }
}

TEST_F(ProducerTest, ReturnsAllWorkingMemoryToTheBudget) {
  LoaderOptions options = Options();
  auto loader = Open(options);
  (void)Take(*loader, 3);
  EXPECT_GT(options.runtime->budget().used(), 0u);
  loader.reset();
  EXPECT_EQ(options.runtime->budget().used(), 0u);
}

TEST_F(ProducerTest, ErrorsNameBadOptions) {
  const auto cause = [](auto change) {
    LoaderOptions options = Options();
    change(options);
    const auto loader = Producer::Open(options);
    return loader.ok() ? std::string("accepted") : loader.error().ToString();
  };
  EXPECT_NE(cause([](auto& o) { o.source = nullptr; }).find("source"), std::string::npos);
  EXPECT_NE(cause([](auto& o) { o.batch_size = 0; }).find("batch_size"), std::string::npos);
  EXPECT_NE(cause([](auto& o) { o.depth = -1; }).find("depth"), std::string::npos);
  EXPECT_NE(cause([](auto& o) { o.depth = 1 << 20; }).find("depth"), std::string::npos);
  EXPECT_NE(cause([](auto& o) { o.lent_batches = -1; }).find("lent_batches"), std::string::npos);
  EXPECT_NE(cause([](auto& o) { o.rank = 1; }).find("rank"), std::string::npos);
  EXPECT_NE(cause([](auto& o) { o.epochs = 0; }).find("epochs"), std::string::npos);
  EXPECT_NE(cause([](auto& o) { o.dtype = DType::kI64; }).find("int64"), std::string::npos);
  EXPECT_NE(cause([](auto& o) { o.dtype = DType::kF64; }).find("float64"), std::string::npos);
  EXPECT_NE(cause([](auto& o) {
              o.batch_size = 100;
              o.drop_remainder = true;
            }).find("batch_size"),
            std::string::npos);
  EXPECT_NE(cause([](auto& o) { o.transforms = {Resize{.size = 0}}; }).find("Resize"),
            std::string::npos);
  EXPECT_EQ(cause([](auto& o) { o.batch_size = 100; }), "accepted") << "one short batch an epoch";
}

}  // namespace
}  // namespace stoker
