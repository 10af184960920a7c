#include "transforms/processor/patches.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/numbers/half.h"

namespace stoker {
namespace {

struct Shape {
  ImageSize size, patch;
  int merge, temporal;
  bool interleaved;
};

// As transformers permutes the axes of its arrays: reads one value of the canvas for each of the
// output.
std::vector<uint8_t> InOrder(const std::vector<uint8_t>& canvas, const Shape& shape) {
  const auto [width, height] = shape.size;
  const auto [patch_width, patch_height] = shape.patch;
  const auto at = [&](int c, int y, int x) {
    const int i = shape.interleaved ? (y * width + x) * 3 + c : (c * height + y) * width + x;
    return canvas[static_cast<size_t>(i)];
  };
  std::vector<uint8_t> values;
  const int rows = height / patch_height / shape.merge, columns = width / patch_width / shape.merge;
  for (int gy = 0; gy < rows; ++gy) {
    for (int gx = 0; gx < columns; ++gx) {
      for (int my = 0; my < shape.merge; ++my) {
        for (int mx = 0; mx < shape.merge; ++mx) {
          const int top = (gy * shape.merge + my) * patch_height;
          const int left = (gx * shape.merge + mx) * patch_width;
          const int pixels = patch_width * patch_height;
          for (int i = 0; i < 3 * shape.temporal * pixels; ++i) {
            const int c = shape.interleaved ? i % 3 : i / pixels / shape.temporal;
            const int pixel = shape.interleaved ? i / 3 : i % pixels;
            values.push_back(at(c, top + pixel / patch_width, left + pixel % patch_width));
          }
        }
      }
    }
  }
  return values;
}

TEST(Patches, HaveTheOrderOfTransformers) {
  std::mt19937 random(7);
  const Shape shapes[] = {{{5, 3}, {5, 3}, 1, 1, false},    {{56, 84}, {14, 14}, 2, 2, false},
                          {{48, 32}, {16, 16}, 1, 1, true}, {{18, 12}, {6, 4}, 1, 1, false},
                          {{24, 36}, {2, 3}, 3, 4, false},  {{1, 1}, {1, 1}, 1, 3, false}};
  for (const Shape& shape : shapes) {
    const auto pixels = static_cast<size_t>(shape.size.width * shape.size.height);
    std::vector<uint8_t> canvas(3 * pixels);
    for (uint8_t& value : canvas) value = static_cast<uint8_t>(random());
    const std::vector<uint8_t> expected = InOrder(canvas, shape);
    const ProcessorRecipe recipe{
        .family = shape.interleaved ? ProcessorFamily::kNaFlex : ProcessorFamily::kQwen,
        .patch = shape.patch,
        .merge = shape.merge,
        .temporal = shape.temporal,
        .rescales = false,
        .normalizes = false};
    ASSERT_EQ(RowValues(recipe, shape.patch) * pixels /
                  static_cast<size_t>(shape.patch.width * shape.patch.height),
              expected.size());
    for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
      const size_t bytes = SizeOf(dtype);
      std::vector<uint8_t> rows(expected.size() * bytes + 1, 0xAB);
      WritePatches(canvas.data(), shape.size, shape.patch, recipe, PatchValues(recipe, dtype),
                   rows.data());
      EXPECT_EQ(rows.back(), 0xAB);
      for (size_t i = 0; i < expected.size(); ++i) {
        float value = rows[i];
        uint16_t bits;
        std::memcpy(&bits, rows.data() + i * bytes, bytes == 2 ? 2 : 1);
        if (dtype == DType::kF16) value = Float16Value(bits);
        if (dtype == DType::kBF16) value = BFloat16Value(bits);
        if (dtype == DType::kF32) std::memcpy(&value, rows.data() + i * bytes, bytes);
        ASSERT_EQ(value, expected[i]) << i << " of " << NameOf(dtype);
      }
    }
  }
}

// Values that vectors compute are those of the table, for runs of any length.
TEST(Patches, ComputedValuesAreThoseOfTheTable) {
  std::mt19937 random(11);
  const auto from = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
  };
  for (int round = 0; round < 300; ++round) {
    const bool interleaved = round % 3 == 0;
    ProcessorRecipe recipe{
        .family = interleaved ? ProcessorFamily::kNaFlex : ProcessorFamily::kQwen,
        .patch = {from(1, round % 10 == 0 ? 70 : 20), from(1, 5)},
        .merge = from(1, 2),
        .temporal = interleaved ? 1 : from(1, 2)};
    for (size_t c = 0; c < 3; ++c) {
      recipe.mean[c] = from(-20, 120) / 97.0;
      recipe.deviation[c] = from(1, 120) / (round % 7 == 0 ? 1e7 : 97.0);
    }
    const ImageSize size{recipe.patch.width * recipe.merge * from(1, 3),
                         recipe.patch.height * recipe.merge * from(1, 3)};
    const auto pixels = static_cast<size_t>(size.width * size.height);
    std::vector<uint8_t> canvas(3 * pixels);
    for (uint8_t& value : canvas) value = static_cast<uint8_t>(random());
    for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
      PatchValues values(recipe, dtype);
      ASSERT_TRUE(values.computed);
      const size_t bytes = 3 * pixels * static_cast<size_t>(recipe.temporal) * SizeOf(dtype);
      std::vector<uint8_t> computed(bytes + 1, 0xAB), looked_up(bytes + 1, 0xAB);
      WritePatches(canvas.data(), size, recipe.patch, recipe, values, computed.data());
      values.computed = false;
      WritePatches(canvas.data(), size, recipe.patch, recipe, values, looked_up.data());
      ASSERT_EQ(computed, looked_up) << round << " as " << NameOf(dtype);
      ASSERT_EQ(computed.back(), 0xAB);
    }
  }
}

// The two orders of operations differ in the last bit of some values.
TEST(Patches, ValuesAreRoundedAsByEachProcessor) {
  ProcessorRecipe recipe{.mean = {0.48145466, 0.4578275, 0.40821073},
                         .deviation = {0.26862954, 0.26130258, 0.27577711}};
  const PatchValues torch(recipe, DType::kF32);
  recipe.resampler = ResampledAs::kPillowExact;
  const PatchValues pillow(recipe, DType::kF32);
  int differ = 0;
  for (size_t c = 0; c < 3; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      const double exact = (byte / 255.0 - recipe.mean[c]) / recipe.deviation[c];
      const float a = torch.singles[c][static_cast<size_t>(byte)],
                  b = pillow.singles[c][static_cast<size_t>(byte)];
      EXPECT_NEAR(a, exact, 5e-7);
      EXPECT_NEAR(b, exact, 5e-7);
      differ += a != b;
    }
  }
  EXPECT_GT(differ, 0);
  EXPECT_TRUE(torch.computed);
  EXPECT_FALSE(pillow.computed);
  recipe.resampler = ResampledAs::kTorchvision;
  const Normalisation by = NormalisationOf(recipe);
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ((static_cast<float>(byte) - by.mean[1]) / by.deviation[1],
              torch.singles[1][static_cast<size_t>(byte)]);
  }
}

}  // namespace
}  // namespace stoker
