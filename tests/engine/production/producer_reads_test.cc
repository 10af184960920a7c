// Reading does not affect batches, unless it fails. Uses a reader that completes late and out of
// order, and fails as the test says.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <memory>

#include "engine/production/producer.h"
#include "engine/runtime/runtime_with_readers.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/fake_reader.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::FakeDisk;
using ::stoker::testing::FakeReader;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::Take;
using ::stoker::testing::TakeEpoch;

constexpr int kReadPhotos = 61;
constexpr uint32_t kReadBatch = 8;

FakeDisk CopyOf(const PhotoFolder& photos) {
  FakeDisk disk;
  for (uint64_t id = 0; id < kReadPhotos; ++id) {
    const std::string path = photos.FileOf(id);
    std::ifstream stream(path, std::ios::binary);
    disk.files[path] = {std::istreambuf_iterator<char>(stream), {}};
  }
  return disk;
}

// Each reader thread gets a reader of its own, with a seed of its own.
std::shared_ptr<Runtime> Fake(std::shared_ptr<const FakeDisk> disk, uint64_t seed) {
  RuntimeOptions runtime = RuntimeUnderTest(2);
  runtime.reader_threads = 1 + static_cast<int>(seed % 3);
  auto made = std::make_shared<std::atomic<uint64_t>>(0);
  const auto make_reader = [disk, seed, made]() -> Result<std::unique_ptr<Reader>> {
    const auto depth = static_cast<uint32_t>(1 + seed * 7 % 32);
    std::unique_ptr<Reader> reader =
        std::make_unique<FakeReader>(disk, depth, 1000 * seed + (*made)++);
    return reader;
  };
  return RuntimeWithReaders(runtime, make_reader).value();
}

LoaderOptions OptionsOfReads(const PhotoFolder& photos, std::shared_ptr<Runtime> runtime) {
  LoaderOptions options;
  options.source = photos.Source();
  options.transforms = {RandomResizedCrop{.height = 32, .width = 24}, RandomHorizontalFlip{}};
  options.batch_size = kReadBatch;
  options.shuffle = true;
  options.seed = 5;
  options.runtime = std::move(runtime);
  return options;
}

TEST(ProducerReads, LateAndReorderedReadsGiveTheSameBatches) {
  const PhotoFolder photos(kReadPhotos, 4);
  auto expected = TakeEpoch(
      *Producer::Open(OptionsOfReads(photos, Runtime::Create(RuntimeUnderTest(2)).value()))
           .value());
  ASSERT_EQ(expected.size(), (kReadPhotos + kReadBatch - 1) / kReadBatch);
  const FakeDisk whole = CopyOf(photos);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const auto disk = std::make_shared<FakeDisk>(whole);
    disk->at_once = seed % 2 == 0 ? 0.5 : 0.0;
    disk->longest_delay = 8u << (seed % 4);
    auto loader = Producer::Open(OptionsOfReads(photos, Fake(disk, seed))).value();
    EXPECT_EQ(TakeEpoch(*loader), expected) << "seed " << seed;
  }
}

TEST(ProducerReads, AFailedReadFailsOnlyItsBatch) {
  const PhotoFolder photos(kReadPhotos, 4);
  const auto expected = TakeEpoch(
      *Producer::Open(OptionsOfReads(photos, Runtime::Create(RuntimeUnderTest(2)).value()))
           .value());
  auto whole =
      Producer::Open(OptionsOfReads(photos, Runtime::Create(RuntimeUnderTest(2)).value())).value();
  (void)Take(*whole, 3);
  const Batch fourth = whole->Next().value();
  const std::string file = photos.FileOf(fourth.sample_ids()[5]);
  const auto disk = std::make_shared<FakeDisk>(CopyOf(photos));
  disk->faults[file] = {.error_number = EIO};
  for (uint64_t seed = 0; seed < 6; ++seed) {
    auto loader = Producer::Open(OptionsOfReads(photos, Fake(disk, seed))).value();
    for (size_t b = 0; b < expected.size(); ++b) {
      const Result<Batch> batch = loader->Next();
      if (b != 3) {
        ASSERT_TRUE(batch.ok()) << "batch " << b << ": " << batch.error().ToString();
        ASSERT_TRUE(*batch);
        EXPECT_EQ(testing::Fingerprint(*batch), expected[b]) << "seed " << seed << " batch " << b;
        continue;
      }
      ASSERT_FALSE(batch.ok()) << "seed " << seed;
      EXPECT_EQ(batch.error().file, file);
      EXPECT_EQ(batch.error().code, SystemError(EIO, "", file).code);
    }
    EXPECT_FALSE(loader->Next().value()) << "the end of the epoch";
  }
}

}  // namespace
}  // namespace stoker
