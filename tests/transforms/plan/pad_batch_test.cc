// Rows of the size of their batch's largest image (PadTo::multiple).
#include "transforms/plan/row/pad_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/transforms/plan/padded_file.h"
#include "tests/transforms/plan/random_recipe.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using testing::PaddedFile;
using testing::Random;

TEST(PadBatch, MovesAsTheReference) {
  Random random(31);
  for (int n = 0; n < testing::Effort(2000); ++n) {
    const size_t planes = random.OneIn(2) ? 1 : 3;
    const size_t pixel = planes == 3 ? size_t{1} << random.Between(0, 2)
                                     : std::vector<size_t>{1, 2, 3, 6, 12}[random.Between(0, 4)];
    std::vector<int32_t> sizes;
    for (int i = 2 * random.Between(1, 5); i > 0; --i) {
      sizes.push_back(random.OneIn(4) ? 1 : random.Between(1, 40));
    }
    const ImageSize whole = LargestOf(sizes, static_cast<uint32_t>(random.Between(1, 33)));
    const size_t row_bytes = planes * pixel * static_cast<size_t>(whole.width * whole.height);
    const size_t reserved =
        row_bytes + static_cast<size_t>(random.OneIn(2) ? 0 : random.Between(0, 999));
    std::vector<uint8_t> moved(reserved * sizes.size() / 2 + 1);
    for (uint8_t& byte : moved) byte = static_cast<uint8_t>(random.Between(0, 255));
    std::vector<uint8_t> wanted = moved;
    BatchRows rows{.reserved_bytes = reserved, .planes = planes, .pixel_bytes = pixel};
    for (size_t i = 0; i < rows.padding.size(); ++i) {
      rows.padding[i] = random.OneIn(3) ? 7 : static_cast<uint8_t>(i);
    }
    if (random.OneIn(3)) rows.padding.fill(9);
    rows.data = moved.data();
    PadBatch(rows, sizes, whole);
    rows.data = wanted.data();
    PadBatchPlain(rows, sizes, whole);
    const size_t bytes = row_bytes * sizes.size() / 2;
    ASSERT_TRUE(
        std::equal(moved.begin(), moved.begin() + static_cast<ptrdiff_t>(bytes), wanted.begin()))
        << n << ": " << planes << " planes of " << pixel << " bytes, " << whole.width << " × "
        << whole.height;
    ASSERT_EQ(moved.back(), wanted.back());
  }
}

TEST(PadBatch, RoundsTheLargestSidesUp) {
  EXPECT_EQ(LargestOf(std::vector<int32_t>{9, 64, 33, 5}, 32), (ImageSize{64, 64}));
  EXPECT_EQ(LargestOf(std::vector<int32_t>{9, 64, 33, 5}, 1), (ImageSize{64, 33}));
}

// Returns the list with its PadTo replaced.
std::vector<Transform> With(const PadTo& pad_to, std::vector<Transform> list) {
  for (Transform& transform : list) {
    if (auto* const found = std::get_if<PadTo>(&transform)) {
      const Fill fill = found->fill;
      *found = pad_to;
      found->fill = fill;
    }
  }
  return list;
}

bool HasPadTo(const std::vector<Transform>& list) {
  return std::ranges::any_of(list,
                             [](const Transform& t) { return std::holds_alternative<PadTo>(t); });
}

// A batch of images, with a mask each, in the memory of a slot.
struct MadeBatch {
  MadeBatch(const Plan& plan, std::span<const PaddedFile> files, uint64_t seed)
      : sizes(files.size()), pixels(2) {
    MemoryBudget budget(256 << 20);
    const auto workspace = plan.MakeWorkspace(budget);
    StageTimes times;
    for (uint32_t piece = 0; piece < 2; ++piece) {
      const size_t bytes = plan.piece(piece).row_bytes();
      pixels[piece].resize(bytes * files.size() / 2);
      for (size_t i = 0; i < files.size() / 2; ++i) {
        const EncodedImage image{
            .piece = piece,
            .bytes = files[2 * i + piece].span(),
            .key = {seed, 0, i},
            .to = {.row = pixels[piece].data() + i * bytes, .size = sizes.data() + 2 * i}};
        const Status status = plan.Apply(image, *workspace, times);
        EXPECT_TRUE(status.ok()) << status.error().ToString();
      }
    }
  }

  std::vector<int32_t> sizes;
  std::vector<std::vector<uint8_t>> pixels;  // of the images, and of the masks
};

// The batch has the bytes of one with a PadTo of the size that it turned out to have.
TEST(PadBatch, MakesWhatPadToMakes) {
  constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  Random random(32);
  int compared = 0;
  for (int n = 0; n < testing::Effort(800); ++n) {
    PlanOptions options;
    options.dtype = kDTypes[random.Between(0, 3)];
    options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.decode = random.OneIn(2) ? DecodeSize::kFull : DecodeSize::kScaled;
    options.read_later = random.OneIn(2);
    const auto fill = static_cast<uint16_t>(random.Between(0, 255));
    options.pieces = {{}, {random.OneIn(2) ? Piece::Kind::kMask : Piece::Kind::kMask16, fill}};
    const std::vector<Transform> list = testing::RandomRecipe(random, options.dtype);
    if (!HasPadTo(list)) continue;
    options.objects = testing::FieldsFor(list);
    const PadTo largest{.multiple = random.Between(1, 20)};
    const Result<Plan> plan = Plan::Compile(With(largest, list), options);
    if (!plan.ok()) {
      ASSERT_THAT(plan.error().cause, HasSubstr("limits the size"));
      continue;
    }
    std::vector<PaddedFile> files;
    for (int i = random.Between(1, 4); i > 0; --i) {
      const int width = random.Between(1, 90), height = random.Between(1, 90);
      files.emplace_back(testing::MakeJpeg({.width = width, .height = height}));
      files.emplace_back(testing::MakePng({.width = width, .height = height, .color = 0}));
    }
    const auto seed = static_cast<uint64_t>(n);
    MadeBatch batch(*plan, files, seed);
    const ImageSize size = LargestOf(batch.sizes, plan->multiple());
    ASSERT_LE(size.width, plan->output_size().width);
    ASSERT_LE(size.height, plan->output_size().height);
    const Plan fixed =
        Plan::Compile(With({.height = size.height, .width = size.width}, list), options).value();
    const MadeBatch wanted(fixed, files, seed);
    ASSERT_EQ(batch.sizes, wanted.sizes);
    for (uint32_t piece = 0; piece < 2; ++piece) {
      std::vector<uint8_t>& pixels = batch.pixels[piece];
      FinishBatch(plan->piece(piece), pixels.data(), batch.sizes, size);
      ASSERT_EQ(plan->piece(piece).row_shape(size), fixed.piece(piece).row_shape());
      ASSERT_GE(pixels.size(), wanted.pixels[piece].size());
      ASSERT_TRUE(std::ranges::equal(wanted.pixels[piece],
                                     std::span(pixels).first(wanted.pixels[piece].size())))
          << n << ", piece " << piece << ": " << plan->Describe();
    }
    ++compared;
  }
  EXPECT_GT(compared, testing::Effort(800) / 20);
}

TEST(PadBatch, IsLimitedByTheTransformsBefore) {
  const auto most_of = [](std::vector<Transform> list, int multiple = 1) {
    list.emplace_back(PadTo{.multiple = multiple});
    PlanOptions options;
    options.objects = testing::FieldsFor(list);
    return Plan::Compile(list, options).value().output_size();
  };
  EXPECT_EQ(most_of({Resize{.size = 800, .max_size = 1333}}, 32), (ImageSize{1344, 1344}));
  EXPECT_EQ(most_of({Resize{.max_size = 640}}), (ImageSize{640, 640}));
  EXPECT_EQ(most_of({Resize{.height = 30, .width = 50}}, 20), (ImageSize{60, 40}));
  EXPECT_EQ(most_of({RandomShortestSize{.min_size = {480, 800}, .max_size = 1333}}),
            (ImageSize{1333, 1333}));
  EXPECT_EQ(most_of({ScaleJitter{.width = 100, .height = 60, .scale_range = {0.1, 2}}}),
            (ImageSize{200, 120}));
  EXPECT_EQ(most_of({ScaleJitter{.width = 1, .height = 9, .scale_range = {0.1, 0.5}}}),
            (ImageSize{1, 4}));
  EXPECT_EQ(most_of({RandomZoomOut{}, RandomIoUCrop{}, Resize{.max_size = 99}}),
            (ImageSize{99, 99}));
  EXPECT_EQ(most_of({Resize{.max_size = 99}, RandomZoomOut{.side_range = {1, 1.5}}}),
            (ImageSize{148, 148}));
  EXPECT_EQ(most_of({Resize{.max_size = 99}, Pad{.padding = {1, 2, 3, 4}}}), (ImageSize{103, 105}));
  EXPECT_EQ(most_of({Resize{.max_size = 99}, RandomIoUCrop{}}), (ImageSize{99, 99}));
  EXPECT_EQ(most_of({CenterCrop{.height = 7, .width = 9}, Resize{.size = 70}}),
            (ImageSize{90, 70}));
}

TEST(PadBatch, RefusesWhatHasNoLimit) {
  const auto refused = [](std::vector<Transform> list, const std::string& cause,
                          PlanOptions options = {}) {
    options.objects = testing::FieldsFor(list);
    const Result<Plan> plan = Plan::Compile(list, options);
    ASSERT_FALSE(plan.ok()) << plan.value().Describe();
    EXPECT_THAT(plan.error().ToString(), HasSubstr(cause));
    EXPECT_FALSE(plan.error().advice.empty());
  };
  const PadTo largest{.multiple = 32};
  refused({largest}, "transforms[0], PadTo: no transform before it limits the size");
  refused({Resize{.size = 800}, largest}, "limits the size");
  refused({RandomShortestSize{.min_size = {480}}, largest}, "limits the size");
  refused({RandomZoomOut{}, RandomIoUCrop{}, largest}, "limits the size");
  refused({Resize{.max_size = 65530}, largest}, "65536 × 65536");
  refused({Resize{.max_size = 9}, PadTo{.height = 9, .width = 9, .multiple = 2}}, "together with");
  refused({Resize{.max_size = 9}, PadTo{}}, "height = 0");
  refused({Resize{.max_size = 9}, PadTo{.multiple = 70000}}, "multiple = 70000");
  refused({Resize{.max_size = 9}, largest, ConvertBoundingBoxFormat{.normalized = true}},
          "boxes are written before the batch is complete");
  PlanOptions deferred;
  deferred.defer_to_device = true;
  refused({Resize{.max_size = 9}, largest}, "a device has rows of one size", deferred);
}

}  // namespace
}  // namespace stoker
