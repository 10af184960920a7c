// Loaders that mix the rows of their batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/memory/memory_plan.h"
#include "engine/order/sampler.h"
#include "engine/production/producer.h"
#include "io/folder/image_folder.h"
#include "io/memory/arrays.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/listed_files.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"
#include "transforms/mix/draw_mix.h"
#include "transforms/mix/mix_rows.h"

namespace stoker {
namespace {

using ::stoker::testing::ExecutorsUnderTest;
using ::stoker::testing::ListedFiles;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::Take;
using ::stoker::testing::TakeEpoch;

const BatchMix kBoth{.choices = {MixUp{0.4}, CutMix{1}}, .p = {0.5, 0.5}};

class ProducerMix : public ::testing::Test {
 protected:
  static constexpr int kPhotos = 61, kClasses = 4;
  static constexpr uint32_t kBatch = 12;  // the last one has a single row
  static constexpr ImageSize kImage{24, 32};

  static void SetUpTestSuite() { photos_ = new PhotoFolder(kPhotos, kClasses); }
  static void TearDownTestSuite() { delete photos_; }

  static LoaderOptions Options(const RuntimeOptions& runtime = RuntimeUnderTest(2)) {
    LoaderOptions options;
    options.source = photos_->Source();
    options.transforms = {RandomResizedCrop{.height = kImage.height, .width = kImage.width},
                          RandomHorizontalFlip{}};
    options.batch_size = kBatch;
    options.shuffle = true;
    options.seed = 5;
    options.mix = kBoth;
    options.runtime = Runtime::Create(runtime).value();
    return options;
  }

  static std::unique_ptr<Producer> Open(LoaderOptions options) {
    return Producer::Open(std::move(options)).value();
  }

  static std::string Refusal(const LoaderOptions& options) {
    const auto loader = Producer::Open(options);
    if (loader.ok()) return "accepted";
    EXPECT_EQ(loader.error().code, Code::kInvalidArgument);
    return loader.error().ToString();
  }

  static PhotoFolder* photos_;
};
PhotoFolder* ProducerMix::photos_ = nullptr;

std::vector<uint8_t> BytesOf(const Column& column) {
  const auto* data = static_cast<const uint8_t*>(column.data);
  return {data, data + column.bytes()};
}

// The expected batch: made without mixing, and mixed by the reference.
void ExpectMixedByHand(const Batch& mixed, const Batch& plain, const MixedRow& image,
                       const DrawnMix& drawn, size_t classes) {
  const auto rows = static_cast<size_t>(plain.rows());
  std::vector<uint8_t> images = BytesOf(plain.images());
  MixRowsPlain(drawn, image, rows, images.data());
  EXPECT_EQ(mixed.images().dtype, plain.images().dtype);
  EXPECT_EQ(mixed.images().shape, plain.images().shape);
  ASSERT_TRUE(BytesOf(mixed.images()) == images) << "batch " << plain.index();

  const Column& labels = mixed.labels();
  EXPECT_EQ(labels.name, "label");
  EXPECT_EQ(labels.dtype, DType::kF32);
  EXPECT_EQ(labels.shape, (std::vector<int64_t>{plain.rows(), static_cast<int64_t>(classes)}));
  const auto lam = static_cast<float>(drawn.lam), rest = static_cast<float>(1 - drawn.lam);
  const auto classes_of = plain.labels().as<int64_t>();
  for (size_t row = 0; row < rows; ++row) {
    std::vector<float> expected(classes);
    expected[static_cast<size_t>(classes_of[row])] += lam;
    expected[static_cast<size_t>(classes_of[(row + rows - 1) % rows])] += rest;
    for (size_t c = 0; c < classes; ++c) {
      ASSERT_EQ(labels.as<float>()[row * classes + c], expected[c]) << row << " " << c;
    }
  }
}

TEST_F(ProducerMix, MatchesMixingByHandForEveryTypeAndLayout) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
      LoaderOptions options = Options();
      options.dtype = dtype;
      options.layout = layout;
      options.world = 2;
      options.rank = 1;
      const Sampler order = Sampler::Make({.samples = kPhotos,
                                           .shuffle = true,
                                           .seed = 5,
                                           .batch_size = kBatch,
                                           .rank = 1,
                                           .world = 2})
                                .value();
      auto mixing = Open(options);
      options.mix.reset();
      auto plain = Open(options);
      const size_t height = kImage.height, width = kImage.width;
      const MixedRow row = layout == Layout::kNhwc ? MixedRow{dtype, 1, height, width, 3}
                                                   : MixedRow{dtype, 3, height, width, 1};
      int cuts = 0, batches = 0;
      const auto epochs = static_cast<uint64_t>(testing::Effort(3));
      for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
        while (Batch batch = plain->Next().value()) {
          const uint64_t first = order.At({epoch, batch.index()}, 0).position;
          const DrawnMix drawn = DrawMix(kBoth, {5, epoch, first}, kImage);
          ExpectMixedByHand(mixing->Next().value(), batch, row, drawn, kClasses);
          cuts += drawn.cut ? 1 : 0;
          ++batches;
        }
        EXPECT_FALSE(mixing->Next().value());
      }
      EXPECT_GT(cuts, 0);
      EXPECT_LT(cuts, batches);
    }
  }
}

// 61 = 5 × 12 + 1.
TEST_F(ProducerMix, ALastBatchOfOneRowIsMixedWithItself) {
  LoaderOptions options = Options();
  auto mixing = Open(options);
  options.mix.reset();
  auto plain = Open(options);
  ASSERT_TRUE(mixing->Seek({0, 5}).ok());
  ASSERT_TRUE(plain->Seek({0, 5}).ok());
  const Batch mixed = mixing->Next().value(), batch = plain->Next().value();
  EXPECT_EQ(mixed.rows(), 1);
  EXPECT_EQ(BytesOf(mixed.images()), BytesOf(batch.images()));
  float sum = 0;
  for (float label : mixed.labels().as<float>()) sum += label;
  EXPECT_NEAR(sum, 1, 1e-6);
}

// Every combination, or a third of them if Effort is less than full.
TEST_F(ProducerMix, BytesDependOnNeitherThreadsNorDepthNorExecutor) {
  auto one = Open(Options(RuntimeUnderTest(1)));
  std::vector<uint64_t> expected = TakeEpoch(*one);
  const std::vector<uint64_t> second = TakeEpoch(*one);
  expected.insert(expected.end(), second.begin(), second.end());
  const int every = testing::Effort(10) == 10 ? 1 : 3;
  int turn = 0;
  for (testing::TestedExecutor executor : ExecutorsUnderTest()) {
    ++turn;
    for (int threads : {1, 2, 8}) {
      for (int depth : {1, 4, 16}) {
        if (turn++ % every != 0) continue;
        RuntimeOptions runtime = RuntimeUnderTest(threads);
        testing::SetExecutor(executor, runtime);
        LoaderOptions options = Options(runtime);
        options.depth = depth;
        auto loader = Open(options);
        ASSERT_EQ(Take(*loader, expected.size()), expected)
            << loader->Stats().executor << " threads " << threads << " depth " << depth;
        EXPECT_GT(loader->Stats().stages.mix_ns, 0u);
        const LoaderStats stats = loader->Stats();
        const StageTimes& stages = stats.stages;
        EXPECT_GE(stats.work_ns,
                  stages.decode_ns + stages.resize_ns + stages.augment_ns + stages.mix_ns);
      }
    }
  }
}

TEST_F(ProducerMix, SeedsEpochsAndRanksDrawDifferently) {
  const auto labels = [](uint64_t seed, uint64_t epoch, uint32_t rank) {
    LoaderOptions options = Options();
    options.mix = BatchMix{.choices = {MixUp{1}}};
    options.seed = seed;
    options.world = 2;
    options.rank = rank;
    auto loader = Open(options);
    EXPECT_TRUE(loader->Seek({epoch, 0}).ok());
    const Batch batch = loader->Next().value();
    float least = 1;  // of lam and 1 − lam
    for (float label : batch.labels().as<float>())
      least = label > 0 ? std::min(least, label) : least;
    EXPECT_LT(least, 1);
    return least;
  };
  EXPECT_EQ(labels(1, 0, 0), labels(1, 0, 0));
  EXPECT_NE(labels(1, 0, 0), labels(2, 0, 0));
  EXPECT_NE(labels(1, 0, 0), labels(1, 1, 0));
  EXPECT_NE(labels(1, 0, 0), labels(1, 0, 1));
}

TEST_F(ProducerMix, SeekToTheMiddleAndAppendGiveTheSameBatches) {
  auto whole = Open(Options());
  const std::vector<uint64_t> expected = TakeEpoch(*whole);
  auto resumed = Open(Options(RuntimeUnderTest(1)));
  ASSERT_TRUE(resumed->Seek({0, 3}).ok());
  EXPECT_EQ(TakeEpoch(*resumed), std::vector<uint64_t>(expected.begin() + 3, expected.end()));
  ASSERT_TRUE(resumed->Append({0, 4}).ok());
  ASSERT_TRUE(resumed->Append({0, 1}).ok());
  EXPECT_EQ(Take(*resumed, 2), (std::vector<uint64_t>{expected[4], expected[1]}));
}

TEST_F(ProducerMix, AFailedSampleFailsOnlyItsBatch) {
  const PhotoFolder photos(30, 2);
  LoaderOptions options = Options();
  options.source = photos.Source();
  options.shuffle = false;
  options.batch_size = 10;
  const std::vector<uint64_t> expected = TakeEpoch(*Open(options));
  photos.Overwrite(13, "this is no photograph");
  auto loader = Open(options);
  EXPECT_EQ(Take(*loader, 1)[0], expected[0]);
  const Result<Batch> bad = loader->Next();
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().file, photos.FileOf(13));
  EXPECT_EQ(Take(*loader, 1)[0], expected[2]);
}

// Only the wider labels are charged.
TEST_F(ProducerMix, TheBudgetHasRoomForSoftLabels) {
  RuntimeOptions runtime = RuntimeUnderTest(2);
  runtime.memory_budget = 100'000;
  LoaderOptions options = Options(runtime);
  options.batch_size = 16;  // 9 pages of pixels
  options.mix->num_classes = 100;
  const auto refused = Producer::Open(options);
  ASSERT_FALSE(refused.ok());
  const uint64_t slot = 9 * 4096 + 16 * 100 * 4;
  const uint64_t minimum = slot + 2 * kWorkspaceBytes + 2 * kReadBufferBytes;
  EXPECT_NE(refused.error().cause.find(std::to_string(minimum)), std::string::npos)
      << refused.error().ToString();
  runtime.memory_budget = minimum;
  options.runtime = Runtime::Create(runtime).value();
  auto loader = Open(options);
  EXPECT_EQ(TakeEpoch(*loader).size(), loader->batches_per_epoch());
  EXPECT_LE(loader->Stats().memory_peak, minimum);
}

TEST_F(ProducerMix, AcceptsMoreClassesThanTheSourceAndRefusesFewer) {
  LoaderOptions options = Options();
  options.mix->num_classes = 10;
  const Batch batch = Open(options)->Next().value();
  EXPECT_EQ(batch.labels().shape, (std::vector<int64_t>{kBatch, 10}));
  options.mix = BatchMix{.choices = {CutMix{}}, .num_classes = 3};
  EXPECT_NE(Refusal(options).find("CutMix.num_classes is 3"), std::string::npos)
      << Refusal(options);
  options.mix = BatchMix{.choices = {MixUp{-2}}};
  EXPECT_NE(Refusal(options).find("MixUp.alpha is -2"), std::string::npos);
}

TEST_F(ProducerMix, RefusesSamplesWithoutLabels) {
  LoaderOptions options = Options();
  options.source = ImageFolder(photos_->path() + "/class0").value();
  EXPECT_NE(Refusal(options).find("has none"), std::string::npos) << Refusal(options);
}

TEST_F(ProducerMix, LabelsWithoutClassNamesAreDeliveredAndMixed) {
  const std::vector<int64_t> given{2, 0, 5, 0};
  std::vector<ListedFiles::Sample> samples;
  for (size_t i = 0; i < given.size(); ++i) samples.push_back({photos_->FileOf(i), given[i]});
  LoaderOptions options = Options();
  options.source = std::make_shared<ListedFiles>(samples);
  EXPECT_TRUE(options.source->label());
  options.shuffle = false;
  options.batch_size = 4;
  EXPECT_NE(Refusal(options).find("MixUp.num_classes is not given"), std::string::npos)
      << Refusal(options);
  options.mix->num_classes = 6;
  const Batch mixed = Open(options)->Next().value();
  EXPECT_EQ(mixed.labels().shape, (std::vector<int64_t>{4, 6}));
  options.mix.reset();
  const Batch plain = Open(options)->Next().value();
  const auto labels = plain.labels().as<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(labels.begin(), labels.end()), given);

  for (ListedFiles::Sample& sample : samples) sample.label = kNoLabel;
  options.source = std::make_shared<ListedFiles>(samples);
  EXPECT_FALSE(options.source->label());
  options.mix = BatchMix{.choices = {MixUp{}}, .num_classes = 6};
  EXPECT_NE(Refusal(options).find("has none"), std::string::npos) << Refusal(options);
}

TEST_F(ProducerMix, StopsMidEpoch) {
  for (testing::TestedExecutor executor : ExecutorsUnderTest()) {
    RuntimeOptions runtime = RuntimeUnderTest(4);
    testing::SetExecutor(executor, runtime);
    for (size_t batches = 0; batches < 6; ++batches) {
      auto loader = Open(Options(runtime));
      (void)Take(*loader, batches);
      loader->Stop();
      EXPECT_EQ(loader->Next().error().code, Code::kCancelled);
    }
  }
}

// ---- Arrays.

template <typename T>
ArrayColumn LabelsOf(const std::vector<T>& labels, DType dtype) {
  return {"label", dtype, {}, labels.data(), labels.size()};
}

class ProducerMixArrays : public ProducerMix {
 protected:
  static constexpr uint64_t kSamples = 20, kSide = 8;

  ProducerMixArrays() {
    for (size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = static_cast<uint8_t>(i * 37 + i / 251);
    for (size_t i = 0; i < kSamples; ++i) classes_[i] = static_cast<int64_t>(i % 7);
  }

  ArrayColumn Images(DType dtype, std::vector<int64_t> shape) const {
    return {"image", dtype, std::move(shape), pixels_.data(), kSamples};
  }

  LoaderOptions Over(ArrayColumn images, ArrayColumn labels) const {
    LoaderOptions options = Options();
    options.transforms.clear();
    options.source = Arrays({std::move(images), std::move(labels)}, nullptr).value();
    options.batch_size = 6;
    options.mix->num_classes = 7;
    return options;
  }

  std::vector<uint8_t> pixels_ = std::vector<uint8_t>(kSamples * kSide * kSide * 3 * 4);
  std::vector<int64_t> classes_ = std::vector<int64_t>(kSamples);
};

TEST_F(ProducerMixArrays, MixesWithAndWithoutTransforms) {
  for (const bool transformed : {false, true}) {
    LoaderOptions options =
        Over(Images(DType::kU8, {kSide, kSide, 3}), LabelsOf(classes_, DType::kI64));
    if (transformed) options.transforms = {Resize{.height = kSide, .width = kSide}};
    auto mixing = Open(options);
    options.mix.reset();
    auto plain = Open(options);
    const SamplerOptions order{.samples = kSamples, .shuffle = true, .seed = 5, .batch_size = 6};
    while (Batch batch = plain->Next().value()) {
      const uint64_t first = Sampler::Make(order)->At({0, batch.index()}, 0).position;
      const DrawnMix drawn = DrawMix(kBoth, {5, 0, first}, {kSide, kSide});
      ExpectMixedByHand(mixing->Next().value(), batch, {DType::kU8, 1, kSide, kSide, 3}, drawn, 7);
    }
  }
}

TEST_F(ProducerMixArrays, AcceptsLabelsOfEveryIntegerType) {
  std::vector<int8_t> i8(classes_.begin(), classes_.end());
  std::vector<uint8_t> u8(classes_.begin(), classes_.end());
  std::vector<int16_t> i16(classes_.begin(), classes_.end());
  std::vector<uint16_t> u16(classes_.begin(), classes_.end());
  std::vector<int32_t> i32(classes_.begin(), classes_.end());
  std::vector<uint32_t> u32(classes_.begin(), classes_.end());
  std::vector<uint64_t> u64(classes_.begin(), classes_.end());
  const ArrayColumn images = Images(DType::kU8, {kSide, kSide, 3});
  const auto expected = TakeEpoch(*Open(Over(images, LabelsOf(classes_, DType::kI64))));
  for (const ArrayColumn& labels :
       {LabelsOf(i8, DType::kI8), LabelsOf(u8, DType::kU8), LabelsOf(i16, DType::kI16),
        LabelsOf(u16, DType::kU16), LabelsOf(i32, DType::kI32), LabelsOf(u32, DType::kU32),
        LabelsOf(u64, DType::kU64)}) {
    EXPECT_EQ(TakeEpoch(*Open(Over(images, labels))), expected) << NameOf(labels.dtype);
  }
}

TEST_F(ProducerMixArrays, ALabelOutOfRangeIsAnErrorThatNamesIt) {
  for (const int64_t wrong : {int64_t{7}, int64_t{-1}, INT64_MIN}) {
    classes_[4] = wrong;
    LoaderOptions options =
        Over(Images(DType::kU8, {kSide, kSide, 3}), LabelsOf(classes_, DType::kI64));
    options.shuffle = false;
    auto loader = Open(options);
    const Result<Batch> bad = loader->Next();
    ASSERT_FALSE(bad.ok());
    EXPECT_EQ(bad.error().code, Code::kInvalidArgument);
    EXPECT_EQ(bad.error().cause, "the label of sample 4 is " + std::to_string(wrong) +
                                     "; with MixUp it must be between 0 and 6");
    EXPECT_TRUE(loader->Next().ok());
  }
  const std::vector<uint64_t> huge(kSamples, ~uint64_t{0});
  auto loader = Open(Over(Images(DType::kU8, {kSide, kSide, 3}), LabelsOf(huge, DType::kU64)));
  EXPECT_FALSE(loader->Next().ok());
}

TEST_F(ProducerMixArrays, MixUpTakesAnyShapeAndCutMixImagesOnly) {
  const ArrayColumn labels = LabelsOf(classes_, DType::kI64);
  LoaderOptions options = Over(Images(DType::kF32, {48}), labels);
  EXPECT_NE(Refusal(options).find("CutMix needs images"), std::string::npos) << Refusal(options);
  options.mix->choices = {MixUp{1}, MixUp{2}};
  EXPECT_EQ(TakeEpoch(*Open(options)).size(), 4u);
  EXPECT_EQ(Refusal(Over(Images(DType::kU8, {8, 24}), labels)), "accepted");
  EXPECT_NE(Refusal(Over(Images(DType::kU8, {3, 8, 8}), labels)).find("channels last"),
            std::string::npos);
  EXPECT_NE(Refusal(Over(Images(DType::kI32, {8, 8}), labels)).find("int32 (8, 8)"),
            std::string::npos);
}

TEST_F(ProducerMixArrays, RefusesLabelsThatAreNotClassNumbers) {
  const ArrayColumn images = Images(DType::kU8, {kSide, kSide, 3});
  const std::vector<float> soft(kSamples * 7);
  EXPECT_NE(
      Refusal(Over(images, {"label", DType::kF32, {7}, soft.data(), kSamples})).find("float32 (7)"),
      std::string::npos);
  EXPECT_NE(
      Refusal(Over(images, {"label", DType::kF32, {}, soft.data(), kSamples})).find("float32"),
      std::string::npos);
  LoaderOptions options = Over(images, LabelsOf(classes_, DType::kI64));
  options.mix->num_classes = 0;
  EXPECT_NE(Refusal(options).find("MixUp.num_classes is not given"), std::string::npos)
      << Refusal(options);
  options.mix->num_classes = 7;
  options.source = Arrays({images}, nullptr).value();
  EXPECT_NE(Refusal(options).find("has none"), std::string::npos) << Refusal(options);
}

}  // namespace
}  // namespace stoker
