// Loaders that defer operations to a device: applying them gives the bytes of loaders that defer
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/deferred_ops.h"
#include "engine/production/producer.h"
#include "gpu/ops/deferred_ops_job.h"
#include "io/folder/image_folder.h"
#include "io/memory/arrays.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/random.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

using ::stoker::testing::PhotoFolder;
using ::stoker::testing::Random;
using ::stoker::testing::RuntimeUnderTest;

constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
const Normalize kImageNet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
// Values include both infinities, so that mixing them gives NaN.
const Normalize kBeyondFloat16{{0.5F, 0.5F, 0.5F}, {1e-6F, 2e-6F, 1}};

void MaybeFlip(Random& random, std::vector<Transform>& list) {
  if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
  if (random.OneIn(4)) list.emplace_back(RandomVerticalFlip{});
}

void MaybeStep(Random& random, std::vector<Transform>& list) {
  if (random.OneIn(5)) list.emplace_back(ColorJitter{{0.5, 1.5}, {0.5, 1.5}, {0.5, 1.5}, {0, 0.2}});
  if (random.OneIn(6)) list.emplace_back(RandAugment{2, 9, 31, Interpolation::kNearest});
  if (random.OneIn(6)) list.emplace_back(Pad{.padding = {1, 2, 3, 0}, .fill = {9, 8, 7}});
}

void MaybeErase(Random& random, DType dtype, bool normalized, std::vector<Transform>& list) {
  for (int more = random.Between(0, 2); more > 0; --more) {
    RandomErasing erasing{.p = 0.7, .value = {0.25, 1, 0}};
    if (dtype == DType::kU8) erasing.value = {255, 0.5, 90.75};
    erasing.noise = dtype != DType::kU8 && normalized && random.OneIn(2);
    list.emplace_back(erasing);
  }
}

std::vector<Transform> RandomRecipe(Random& random, DType dtype) {
  std::vector<Transform> list;
  MaybeFlip(random, list);
  const int height = random.Between(1, 40);
  const int width = random.OneIn(2) ? random.Between(1, 40) : 16 * random.Between(1, 3);
  const bool pads = random.OneIn(3);  // images keep their sizes
  if (pads) {
    list.emplace_back(Resize{.size = random.Between(1, 30), .max_size = random.Between(31, 48)});
  } else if (random.OneIn(2)) {
    list.emplace_back(RandomResizedCrop{.height = height, .width = width});
  } else {
    if (random.OneIn(2)) list.emplace_back(Resize{.size = 32});
    list.emplace_back(CenterCrop{.height = height, .width = width});
  }
  MaybeFlip(random, list);
  MaybeStep(random, list);
  MaybeFlip(random, list);
  const bool normalizes = dtype != DType::kU8 && random.OneIn(2);
  MaybeErase(random, dtype, !normalizes, list);
  PadTo pad_to{random.Between(54, 70), random.Between(54, 70)};
  const bool pads_first = pads && random.OneIn(2);
  if (pads_first) pad_to.fill = {9, 8, 7};
  if (pads_first) list.emplace_back(pad_to);
  if (normalizes) list.emplace_back(random.OneIn(4) ? kBeyondFloat16 : kImageNet);
  if (normalizes && !pads_first) MaybeErase(random, dtype, true, list);
  if (pads && !pads_first) list.emplace_back(pad_to);
  return list;
}

std::optional<BatchMix> RandomMix(Random& random) {
  switch (random.Between(0, 4)) {
    case 0:
      return BatchMix{.choices = {MixUp{0.4}}};
    case 1:
      return BatchMix{.choices = {CutMix{1}}};
    case 2:
      return BatchMix{.choices = {MixUp{0.2}, CutMix{1}}, .p = {0.5, 0.5}};
    default:
      return std::nullopt;
  }
}

LoaderOptions RandomOptions(Random& random, std::shared_ptr<const SampleSource> source) {
  LoaderOptions options;
  options.source = std::move(source);
  options.dtype = kDTypes[random.Between(0, 3)];
  options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
  options.transforms = RandomRecipe(random, options.dtype);
  const bool pads = std::ranges::any_of(options.transforms, [](const Transform& transform) {
    return std::holds_alternative<PadTo>(transform);
  });
  if (!pads) options.mix = RandomMix(random);
  if (options.mix) options.mix->num_classes = 5;
  options.batch_size = static_cast<uint32_t>(random.Between(1, 9));
  options.shuffle = random.OneIn(2);
  options.seed = static_cast<uint64_t>(random.Between(0, 1000));
  options.epochs = 1;
  options.runtime = Runtime::Create(RuntimeUnderTest(2)).value();
  return options;
}

bool SameBytes(const Column& a, const Column& b) {
  return a.dtype == b.dtype && a.shape == b.shape && std::memcmp(a.data, b.data, a.bytes()) == 0;
}

// Applies the deferred operations of the batch.
std::vector<uint8_t> Finished(const Batch& batch, const LoaderOptions& options, const Plan& plan) {
  DeferredOpsJob job;
  job.from = static_cast<const uint8_t*>(batch.images().data);
  job.rows = batch.rows();
  job.height = plan.output_size().height;
  job.width = plan.output_size().width;
  job.dtype = plan.options().dtype;
  job.layout = plan.options().layout;
  std::copy(plan.scale().begin(), plan.scale().end(), job.scale);
  std::copy(plan.bias().begin(), plan.bias().end(), job.bias);
  job.work = static_cast<const uint8_t*>(batch.columns().back().data);
  job.boxes = plan.boxes();
  job.mixes = options.mix.has_value();
  std::vector<uint8_t> finished(batch.images().bytes() * SizeOf(job.dtype));
  job.to = finished.data();
  ApplyDeferredOnHost(job);
  return finished;
}

// The number of rows with deferred operations.
struct Seen {
  int mirrored = 0, erased = 0, blended = 0, cut = 0;

  void Add(const Column& work) {
    for (int64_t row = 0; row < work.shape[0]; ++row) {
      const uint8_t* const at = static_cast<const uint8_t*>(work.data) + row * work.shape[1];
      DeferredOps left;
      std::memcpy(&left, at, sizeof(left));
      mirrored += left.mirror != 0 ? 1 : 0;
      blended += left.mixing == RowMixing::kBlend ? 1 : 0;
      cut += left.mixing == RowMixing::kCut ? 1 : 0;
      ErasedBox first;
      if (work.shape[1] == sizeof(left)) continue;
      std::memcpy(&first, at + sizeof(left), sizeof(first));
      erased += first.box.width != 0 ? 1 : 0;
    }
  }
};

void ExpectSameBatches(LoaderOptions options, Seen& seen) {
  const Plan plan =
      Plan::Compile(options.transforms,
                    {.dtype = options.dtype, .layout = options.layout, .defer_to_device = true})
          .value();
  SCOPED_TRACE(plan.Describe());
  auto whole = Producer::Open(options).value();
  auto parts = Producer::Open(options, ProducerOptions{.defer_to_device = true}).value();
  ASSERT_EQ(parts->columns().back().name, "work");
  ASSERT_EQ(parts->columns().back().row_bytes(), DeferredOpsBytes(plan.boxes()));
  EXPECT_EQ(plan.finished_shape(), whole->columns()[0].row_shape);
  for (uint64_t n = 0; n < whole->batches_per_epoch(); ++n) {
    const Batch batch = parts->Next().value(), wanted = whole->Next().value();
    seen.Add(batch.columns().back());
    ASSERT_EQ(batch.images().dtype, DType::kU8);
    ASSERT_EQ(batch.columns().size(), wanted.columns().size() + 1);
    const std::vector<uint8_t> got = Finished(batch, options, plan);
    ASSERT_EQ(got.size(), wanted.images().bytes());
    ASSERT_EQ(std::memcmp(got.data(), wanted.images().data, got.size()), 0) << "batch " << n;
    for (size_t c = 1; c < wanted.columns().size(); ++c) {
      ASSERT_TRUE(SameBytes(batch.columns()[c], wanted.columns()[c])) << "batch " << n;
    }
  }
}

TEST(ProducerDeferredOps, MatchesTheHostOnSyntheticPhotographs) {
  const PhotoFolder photos(23, 3);
  Random random(3);
  Seen seen;
  const int most = std::max(40, testing::Effort(200));  // fewer would not be of all kinds
  for (int n = 0; n < most; ++n) {
    SCOPED_TRACE(n);
    ExpectSameBatches(RandomOptions(random, photos.Source()), seen);
    if (HasFatalFailure()) return;
  }
  for (const int rows : {seen.mirrored, seen.erased, seen.blended, seen.cut}) EXPECT_GT(rows, 100);
}

// The rotation of the EXIF tag comes first, then the mirror.
TEST(ProducerDeferredOps, MatchesTheHostOnRotatedPhotographs) {
  const PhotoFolder photos(18, 1);
  for (uint64_t id = 0; id < 18; ++id) {
    testing::JpegOptions jpeg;
    jpeg.width = 30 + static_cast<int>(id);
    jpeg.height = 50 - static_cast<int>(id);
    jpeg.orientation = static_cast<int>(id % 9);
    const std::vector<uint8_t> bytes = testing::MakeJpeg(jpeg);
    photos.Overwrite(id, std::string(bytes.begin(), bytes.end()));
  }
  Random random(4);
  Seen seen;
  for (int n = 0; n < testing::Effort(40); ++n) {
    SCOPED_TRACE(n);
    ExpectSameBatches(RandomOptions(random, photos.Source()), seen);
    if (HasFatalFailure()) return;
  }
}

TEST(ProducerDeferredOps, MatchesTheHostOnArrays) {
  constexpr uint64_t kSamples = 20;
  Random random(5);
  Seen seen;
  std::vector<uint8_t> pixels(kSamples * 33 * 41 * 3);
  for (uint8_t& byte : pixels) byte = static_cast<uint8_t>(random.Between(0, 255));
  std::vector<int64_t> labels(kSamples);
  for (int64_t& label : labels) label = random.Between(0, 4);
  const ArrayColumn images{"image", DType::kU8, {33, 41, 3}, pixels.data(), kSamples};
  const ArrayColumn classes{"label", DType::kI64, {}, labels.data(), kSamples};
  for (int n = 0; n < testing::Effort(60); ++n) {
    SCOPED_TRACE(n);
    ExpectSameBatches(RandomOptions(random, Arrays({images, classes}, nullptr).value()), seen);
    if (HasFatalFailure()) return;
  }
}

TEST(ProducerDeferredOps, MatchesTheHostOnRealPhotographs) {
  const char* const folder = std::getenv("STOKER_PHOTOS");
  if (folder == nullptr) GTEST_SKIP() << "STOKER_PHOTOS is not set";
  const auto source = ImageFolder(folder).value();
  Random random(6);
  Seen seen;
  for (int n = 0; n < testing::Effort(5); ++n) {
    SCOPED_TRACE(n);
    LoaderOptions options = RandomOptions(random, source);
    options.world = 4;  // a quarter of them
    options.rank = static_cast<uint32_t>(n % 4);
    if (options.mix) options.mix->num_classes = 0;
    ExpectSameBatches(std::move(options), seen);
    if (HasFatalFailure()) return;
  }
}

// Without transforms there is nothing to finish: rows are mixed on the CPU.
TEST(ProducerDeferredOps, MatchesTheHostOnCopiedRows) {
  std::vector<float> values(7 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 3;
  std::vector<uint8_t> labels = {0, 1, 2, 2, 1, 0, 1};
  LoaderOptions options;
  options.source = Arrays({{"vector", DType::kF32, {4}, values.data(), 7},
                           {"label", DType::kU8, {}, labels.data(), 7}},
                          nullptr)
                       .value();
  options.batch_size = 3;
  options.mix = BatchMix{.choices = {MixUp{1}}, .num_classes = 3};
  options.runtime = Runtime::Create(RuntimeUnderTest(2)).value();
  auto whole = Producer::Open(options).value();
  auto parts = Producer::Open(options, ProducerOptions{.defer_to_device = true}).value();
  ASSERT_EQ(parts->columns().size(), 2u);
  while (const Batch wanted = whole->Next().value()) {
    const Batch batch = parts->Next().value();
    for (size_t c = 0; c < 2; ++c) EXPECT_TRUE(SameBytes(batch.columns()[c], wanted.columns()[c]));
  }
}

}  // namespace
}  // namespace stoker
