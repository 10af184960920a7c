// In the steady state stoker's own code allocates nothing and takes no lock for a sample; its calls
// for a batch are counted too, and the calls of other libraries are listed.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "engine/production/producer.h"
#include "io/select/combine.h"
#include "io/select/subset.h"
#include "io/select/weighted.h"
#include "tests/engine/loader/call_counts.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/indexed_photos.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/samples/photo_pairs.h"
#include "tests/testing/storage/temp_folder.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"

namespace stoker {
namespace {

constexpr int kPhotos = 256;
constexpr uint32_t kBatch = 32;
constexpr int kEpochs = 6;

void TakeEpochs(Producer& loader, int epochs) {
  for (int e = 0; e < epochs; ++e) {
    while (Batch batch = loader.Next().value()) {
    }
  }
}

struct Setting {
  ReaderKind reader;
  int threads;
  bool derived = false;  // a source made from others, with an order of its own
  bool indexed = false;
  bool paired = false;  // each sample has two images
};

std::shared_ptr<const SampleSource> WithIndexes(const testing::PhotoFolder& photos) {
  std::vector<std::vector<uint8_t>> records(kPhotos);
  for (uint64_t id = 0; id < kPhotos; ++id) {
    std::vector<uint8_t> file = testing::ReadFile(photos.FileOf(id));
    const size_t size = file.size();
    file.resize(size + kBufferPadding);
    EXPECT_EQ(jpeg::CropIndexMaker().Make(std::span(file).first(size), records[id]),
              Fallback::kNone);
  }
  return std::make_shared<testing::IndexedPhotos>(photos.Source(), std::move(records));
}

// Has as many samples an epoch as the folder.
std::shared_ptr<const SampleSource> DerivedFrom(const std::shared_ptr<const SampleSource>& folder) {
  const SourceSplit split = Split(folder, 0.5, 1).value();
  const std::vector<double> weights{1, 2};
  const auto mixed = Combine({split.training, split.validation}, weights, kPhotos / 2).value();
  return Repeated(mixed, 2, kPhotos).value();
}

class SteadyState : public ::testing::TestWithParam<Setting> {};

TEST_P(SteadyState, NothingIsAllocatedOrLockedForASample) {
  const auto [reader, threads, derived, indexed, paired] = GetParam();
  if (!ChooseReader(reader).ok()) GTEST_SKIP() << "no io_uring here";
  const testing::PhotoFolder photos(kPhotos, 4);
  RuntimeOptions runtime;
  runtime.threads = threads;
  runtime.reader = reader;
  runtime.reads_in_flight = 32;  // determines how often its thread wakes
  LoaderOptions options;
  options.source = indexed ? WithIndexes(photos) : photos.Source();
  if (derived) options.source = DerivedFrom(options.source);
  std::optional<testing::PhotoPairs> pairs;
  if (paired) options.source = pairs.emplace(kPhotos, 4).Source();
  options.transforms = {RandomResizedCrop{.height = 64, .width = 64}, RandomHorizontalFlip{}};
  options.batch_size = kBatch;
  options.shuffle = true;
  options.depth = 4;
  options.epochs = kEpochs;  // nothing beyond the samples seen while warming up
  options.runtime = Runtime::Create(runtime).value();
  auto loader = Producer::Open(options).value();
  TakeEpochs(*loader, kEpochs);  // buffers reach their size, libraries make their first allocations
  ASSERT_TRUE(loader->Seek({0, 0}).ok());
  (void)loader->Next();

  testing::StartCounting();
  TakeEpochs(*loader, kEpochs);
  const auto calls = testing::StopCounting();

  constexpr double kSamples = kPhotos * kEpochs;
  constexpr double kBatches = kSamples / kBatch;
  std::printf("%s, threads %d: calls per sample in the steady state\n",
              loader->Stats().reader.c_str(), threads);
  for (const auto& [library, n] : calls) {
    const auto each = [](uint64_t count) { return static_cast<double>(count) / kSamples; };
    std::printf("  %-20s %7.3f allocations %7.3f locks %7.3f reads %7.3f waits %7.3f maps\n",
                library.c_str(), each(n.allocations), each(n.locks), each(n.reads), each(n.waits),
                each(n.maps));
  }
  ASSERT_TRUE(calls.contains("steady_state_test"));  // stoker's code is linked into it
  const testing::Calls& own = calls.at("steady_state_test");
  // A worker holds two samples, each with memory of its own. Which of the two, and which of several
  // workers, gets the largest sample depends on what was ready first.
  const auto growing = static_cast<uint64_t>(kSamples / 50);
  // For each batch: its lease, and the memory of its labels (two: the block and its count).
  EXPECT_LE(own.allocations, growing + static_cast<uint64_t>(3 * kBatches));
  EXPECT_LE(own.maps, growing);
  // Locks and waits are for batches, and for the reader thread, which sleeps until the consumer
  // takes a batch or half of the read requests (two for each thread and 32 in flight) are free
  // again.
  const double wakes = kBatches + kSamples / (16 + threads);
  EXPECT_LE(static_cast<double>(own.locks), 8 * kBatches + 3 * wakes);
  EXPECT_LE(static_cast<double>(own.waits), 4 * kBatches + 3 * wakes);
  if (reader == ReaderKind::kUring) {
    EXPECT_EQ(own.reads, 0u);  // all in the ring
  } else {  // open, fstat, pread, close; some of the first batches were read before the counting
    const int calls_each = paired ? 8 : 4;
    EXPECT_LE(own.reads, calls_each * kSamples);
    EXPECT_GE(own.reads, calls_each * (kSamples - (loader->Stats().depth + 1) * kBatch - 64));
  }
  // The counter sees a known allocation: libjpeg-turbo makes its structures.
  testing::StartCounting();
  { const JpegDecoder decoder({}, nullptr, JpegDecoder::Backend::kLibjpegOnly); }
  EXPECT_TRUE(testing::StopCounting().contains("libjpeg.so")) << "the counting itself is blind";
}

// A sample in the cache costs a look at its file, and one read; two short locks of the cache's
// table for each of these.
TEST(SteadyStateOfCache, NothingIsAllocatedForASample) {
  const testing::PhotoFolder photos(kPhotos, 4);
  const testing::TempFolder folder;
  RuntimeOptions runtime;
  runtime.threads = 1;
  runtime.reader = ReaderKind::kPread;
  LoaderOptions options;
  options.source = photos.Source();
  options.transforms = {RandomResizedCrop{.height = 64, .width = 64}, RandomHorizontalFlip{}};
  options.batch_size = kBatch;
  options.shuffle = true;
  options.depth = 4;
  options.epochs = kEpochs;
  options.cache = {uint64_t{64} << 20, folder.Path("cache")};
  options.runtime = Runtime::Create(runtime).value();
  auto loader = Producer::Open(options).value();
  TakeEpochs(*loader, kEpochs);
  ASSERT_TRUE(loader->Seek({0, 0}).ok());
  (void)loader->Next();

  testing::StartCounting();
  TakeEpochs(*loader, kEpochs);
  const testing::Calls own = testing::StopCounting().at("steady_state_test");

  constexpr double kSamples = kPhotos * kEpochs;
  constexpr double kBatches = kSamples / kBatch;
  std::printf("%7.3f allocations %7.3f locks %7.3f reads for a sample\n",
              static_cast<double>(own.allocations) / kSamples,
              static_cast<double>(own.locks) / kSamples, static_cast<double>(own.reads) / kSamples);
  EXPECT_LE(own.allocations, static_cast<uint64_t>(kSamples / 50 + 3 * kBatches));
  EXPECT_LE(static_cast<double>(own.locks), 5 * kSamples);
  EXPECT_LE(static_cast<double>(own.reads), 2 * kSamples);
}

INSTANTIATE_TEST_SUITE_P(All, SteadyState,
                         ::testing::Values(Setting{ReaderKind::kPread, 1},
                                           Setting{ReaderKind::kPread, 2},
                                           Setting{ReaderKind::kPread, 2, true},
                                           Setting{ReaderKind::kPread, 2, false, true},
                                           Setting{ReaderKind::kUring, 1},
                                           Setting{ReaderKind::kUring, 2},
                                           Setting{ReaderKind::kPread, 2, false, false, true},
                                           Setting{ReaderKind::kUring, 2, false, false, true}));

}  // namespace
}  // namespace stoker
