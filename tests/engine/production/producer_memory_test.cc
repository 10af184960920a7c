// Samples that find no room in the memory budget wait for their turn or are refused; which of the
// two depends on the budget and the file alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/memory/memory_manager.h"
#include "engine/production/producer.h"
#include "engine/runtime/runtime_with_readers.h"
#include "io/memory/arrays.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/indexed_photos.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/fake_reader.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using testing::Effort;
using testing::ExecutorsUnderTest;
using testing::FakeDisk;
using testing::FakeReader;
using ::testing::HasSubstr;
using testing::PhotoFolder;
using testing::RuntimeUnderTest;
using testing::TakeEpoch;

constexpr int kMemoryPhotos = 40;
constexpr uint64_t kMiB = 1 << 20;

// Ordinary photographs, and some that need a few MiB each: progressive and interlaced ones.
class ProducerMemory : public ::testing::Test {
 protected:
  ProducerMemory() {
    const std::vector<uint8_t> large = Progressive(1200, 800);
    for (uint64_t id : {3, 4, 5, 17, 30}) Put(id, large);
    const std::vector<uint8_t> png =
        testing::MakePng({.width = 1000, .height = 900, .interlaced = true});
    for (uint64_t id : {6, 31, 39}) Put(id, png);
  }

  static std::vector<uint8_t> Progressive(int width, int height) {
    return testing::MakeJpeg(
        {.width = width, .height = height, .scans = testing::JpegScans::kProgressive});
  }

  void Put(uint64_t id, const std::vector<uint8_t>& bytes) {
    photos_.Overwrite(id, {bytes.begin(), bytes.end()});
  }

  // Batches have at most 4 MiB; the rest is for samples.
  LoaderOptions Options(RuntimeOptions runtime, uint64_t budget) const {
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {Resize{.height = 32, .width = 24}};
    options.batch_size = 4;
    options.depth = 2;
    options.epochs = 1;
    runtime.memory_budget = budget;
    options.runtime = Runtime::Create(runtime).value();
    return options;
  }

  std::vector<uint64_t> Expected() const {
    return TakeEpoch(*Producer::Open(Options(RuntimeUnderTest(2), 512 * kMiB)).value());
  }

  const PhotoFolder photos_{kMemoryPhotos, 4};
};

// 1200 × 800 pixels of coefficients are 5.5 MiB, of which there are two beside each other at most.
constexpr uint64_t kTight = 9 * kMiB;

TEST_F(ProducerMemory, SamplesWithoutRoomWaitAndBatchesStayTheSame) {
  const std::vector<uint64_t> expected = Expected();
  uint64_t waited = 0;
  for (const testing::TestedExecutor executor : ExecutorsUnderTest()) {
    // It is a matter of chance whether two of them meet, so the test repeats until they do.
    for (int round = 0; round < Effort(4) || (waited == 0 && round < 40); ++round) {
      RuntimeOptions runtime = RuntimeUnderTest(1 + (round + 1) % 4);
      testing::SetExecutor(executor, runtime, static_cast<uint64_t>(round));
      runtime.reader = round % 2 == 0 ? ReaderKind::kPread : ReaderKind::kAuto;
      runtime.reader_threads = 1 + round % 3;
      const LoaderOptions options = Options(runtime, kTight + 4 * kMiB);
      auto loader = Producer::Open(options).value();
      EXPECT_EQ(TakeEpoch(*loader), expected) << "round " << round;
      EXPECT_LE(options.runtime->budget().peak(), kTight + 4 * kMiB);
      waited += options.runtime->memory().samples_waited();
      loader.reset();
      EXPECT_EQ(options.runtime->budget().used(), 0u);
    }
  }
  EXPECT_GT(waited, 0u);
}

// A substitute has the work token of the sample before it, alone or not.
TEST_F(ProducerMemory, SubstitutesWaitForRoomToo) {
  for (const uint64_t id : {0, 8, 9, 18, 19, 29, 32}) Put(id, {'x'});
  const auto options_of = [&](const RuntimeOptions& runtime, uint64_t budget) {
    LoaderOptions options = Options(runtime, budget);
    options.on_bad = BadPolicy::Parse("substitute").value();
    options.max_bad_fraction = 1;
    options.epochs = 3;
    return options;
  };
  const auto take = [](Producer& producer) {
    std::vector<uint64_t> prints;
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const uint64_t print : TakeEpoch(producer)) prints.push_back(print);
    }
    return prints;
  };
  const auto expected = take(*Producer::Open(options_of(RuntimeUnderTest(2), 512 * kMiB)).value());
  uint64_t waited = 0;
  for (int round = 0; round < Effort(8) || (waited == 0 && round < 40); ++round) {
    RuntimeOptions runtime = RuntimeUnderTest(1 + (round + 1) % 4);
    runtime.reader_threads = 1 + round % 3;
    const LoaderOptions options = options_of(runtime, kTight + 4 * kMiB);
    EXPECT_EQ(take(*Producer::Open(options).value()), expected) << "round " << round;
    waited += options.runtime->memory().samples_waited();
  }
  EXPECT_GT(waited, 0u);
}

// A sample that fails while production ends gets no substitute: nobody would read it, and all that
// wait for memory would wait for its end.
TEST_F(ProducerMemory, AnInterruptedSeekLeavesNoSubstituteInWork) {
  const PhotoFolder bad_photos(60, 2);
  for (uint64_t id = 0; id < 60; id += 2) bad_photos.Overwrite(id, "no photograph");
  const LoaderOptions waiting = Options(RuntimeUnderTest(3), 2 * (kTight + 4 * kMiB));
  LoaderOptions options = waiting;
  options.source = bad_photos.Source();
  options.on_bad = BadPolicy::Parse("substitute").value();
  options.max_bad_fraction = 1;
  options.depth = 4;
  options.epochs.reset();
  auto loader = Producer::Open(options).value();
  for (uint64_t i = 0; i < static_cast<uint64_t>(Effort(100)); ++i) {
    (void)loader->Next();
    const Status sought = loader->Seek({i, 0}, Schedule::kEpochs, [] { return true; });
    if (sought.ok()) continue;
    TakeEpoch(*Producer::Open(waiting).value());  // hangs if work is left
  }
}

TEST_F(ProducerMemory, RefusesATooLargeSampleAndNamesASufficientBudget) {
  Put(12, Progressive(3000, 2000));
  const std::vector<uint64_t> expected = Expected();
  std::string said;
  uint64_t named = 0;
  for (const testing::TestedExecutor executor : ExecutorsUnderTest()) {
    for (int round = 0; round < Effort(2); ++round) {
      RuntimeOptions runtime = RuntimeUnderTest(2);
      testing::SetExecutor(executor, runtime, static_cast<uint64_t>(round));
      runtime.reader = round % 2 == 0 ? ReaderKind::kPread : ReaderKind::kAuto;
      auto loader = Producer::Open(Options(runtime, kTight + 4 * kMiB)).value();
      for (size_t i = 0; i < expected.size(); ++i) {
        const Result<Batch> batch = loader->Next();
        if (i != 3) {
          ASSERT_TRUE(batch.ok()) << batch.error().ToString();
          EXPECT_EQ(testing::Fingerprint(*batch), expected[i]);
          continue;
        }
        ASSERT_FALSE(batch.ok());
        EXPECT_EQ(batch.error().code, Code::kResourceExhausted);
        EXPECT_EQ(batch.error().file, photos_.FileOf(12));
        const std::string text = batch.error().ToString();
        if (said.empty()) said = text;
        EXPECT_EQ(text, said) << "whatever else was in work";
        EXPECT_EQ(text.find("this sample needs"), text.rfind("this sample needs")) << text;
        named = batch.error().changes.at(0).least;
      }
    }
  }
  EXPECT_GT(named, kTight + 4 * kMiB);
  EXPECT_LT(named, 64 * kMiB);
  auto loader = Producer::Open(Options(RuntimeUnderTest(2), named)).value();
  EXPECT_EQ(TakeEpoch(*loader), expected);
}

// The indexes are useless, and as large as their files.
TEST_F(ProducerMemory, CropIndexesChangeNeitherBatchesNorRefusals) {
  const std::vector<uint8_t> too_large = Progressive(3000, 2000);
  Put(12, too_large);
  std::vector<std::vector<uint8_t>> indexes;
  for (uint64_t id = 0; id < kMemoryPhotos; ++id) {
    indexes.emplace_back(std::filesystem::file_size(photos_.FileOf(id)), uint8_t{1});
  }
  EXPECT_GT(too_large.size(), kMiB / 2) << "so that its index would be noticed";
  const auto take = [&](bool indexed) {
    LoaderOptions options = Options(RuntimeUnderTest(2), kTight + 4 * kMiB);
    if (indexed) {
      options.source = std::make_shared<testing::IndexedPhotos>(photos_.Source(), indexes);
    }
    auto loader = Producer::Open(options).value();
    std::vector<std::string> taken;
    for (size_t i = 0; i < loader->batches_per_epoch(); ++i) {
      const Result<Batch> batch = loader->Next();
      taken.push_back(batch.ok() ? std::to_string(testing::Fingerprint(*batch))
                                 : batch.error().ToString());
    }
    EXPECT_LE(options.runtime->budget().peak(), kTight + 4 * kMiB);
    return taken;
  };
  EXPECT_EQ(take(true), take(false));
}

TEST_F(ProducerMemory, RefusesATooLargeFile) {
  photos_.Overwrite(7, std::string(40 * kMiB, 'x'));
  auto loader = Producer::Open(Options(RuntimeUnderTest(2), 16 * kMiB)).value();
  int bad = 0;
  for (size_t i = 0; i < loader->batches_per_epoch(); ++i) {
    const Result<Batch> batch = loader->Next();
    if (batch.ok()) continue;
    ++bad;
    EXPECT_EQ(batch.error().file, photos_.FileOf(7));
    EXPECT_THAT(batch.error().Advice(), HasSubstr(", or set memory_budget to "));
  }
  EXPECT_EQ(bad, 1);
}

// A consumer ends, seeks or stops while samples wait.
TEST_F(ProducerMemory, ALoaderEndsWhileSamplesWait) {
  for (int round = 0; round < Effort(12); ++round) {
    RuntimeOptions runtime = RuntimeUnderTest(1 + round % 3);
    const LoaderOptions options = Options(runtime, kTight + 4 * kMiB);
    auto loader = Producer::Open(options).value();
    for (int i = 0; i < round % 10; ++i) EXPECT_TRUE(loader->Next().ok());
    if (round % 3 == 0) {
      EXPECT_TRUE(loader->Seek({0, static_cast<uint64_t>(round) % 10}).ok());
      EXPECT_TRUE(loader->Next().ok());
    } else if (round % 3 == 1) {
      loader->Stop();
    }
    loader.reset();
    EXPECT_EQ(options.runtime->budget().used(), 0u);
  }
}

// One consumer does not come back; the samples of the other loader have their turn all the same. A
// third loader, which opens while samples hold all the memory, gets the share of its batches.
TEST_F(ProducerMemory, AnIdleLoaderDoesNotBlockOthers) {
  const std::vector<uint64_t> expected = Expected();
  for (int round = 0; round < Effort(2); ++round) {
    LoaderOptions options = Options(RuntimeUnderTest(2), 2 * (kTight + 4 * kMiB));
    auto idle = Producer::Open(options).value();
    EXPECT_TRUE(idle->Next().ok());
    auto loader = Producer::Open(options).value();
    EXPECT_EQ(TakeEpoch(*loader), expected);
    std::thread other([&] {
      auto third = Producer::Open(options);
      ASSERT_TRUE(third.ok()) << third.error().ToString();
      EXPECT_EQ(TakeEpoch(**third), expected);
    });
    EXPECT_TRUE(loader->Seek({0, 0}).ok());
    EXPECT_EQ(TakeEpoch(*loader), expected);
    other.join();
    EXPECT_LE(options.runtime->budget().peak(), options.runtime->budget().limit());
  }
}

TEST_F(ProducerMemory, LateAndFailedReadsLeaveOtherBatchesTheSame) {
  const std::vector<uint64_t> expected = Expected();
  FakeDisk whole;
  for (uint64_t id = 0; id < kMemoryPhotos; ++id) {
    std::ifstream stream(photos_.FileOf(id), std::ios::binary);
    whole.files[photos_.FileOf(id)] = {std::istreambuf_iterator<char>(stream), {}};
  }
  for (int round = 0; round < Effort(4); ++round) {
    const auto disk = std::make_shared<FakeDisk>(whole);
    disk->at_once = round % 2 == 0 ? 0.5 : 0.0;
    if (round % 4 == 3) disk->faults[photos_.FileOf(4)] = {EIO};
    RuntimeOptions runtime = RuntimeUnderTest(2);
    runtime.reader_threads = 1 + round % 3;
    const auto made = std::make_shared<std::atomic<uint64_t>>(0);
    const auto make_reader = [disk, round, made]() -> Result<std::unique_ptr<Reader>> {
      return std::unique_ptr<Reader>(std::make_unique<FakeReader>(
          disk, 1 + round * 7 % 32, 1000 * static_cast<uint64_t>(round) + (*made)++));
    };
    runtime.memory_budget = kTight + 4 * kMiB;
    LoaderOptions options = Options(runtime, runtime.memory_budget);
    options.runtime = RuntimeWithReaders(runtime, make_reader).value();
    auto loader = Producer::Open(options).value();
    for (size_t i = 0; i < expected.size(); ++i) {
      const Result<Batch> batch = loader->Next();
      ASSERT_EQ(batch.ok(), round % 4 != 3 || i != 1);
      if (!batch.ok()) continue;
      EXPECT_EQ(testing::Fingerprint(*batch), expected[i]);
    }
  }
}

}  // namespace
}  // namespace stoker
