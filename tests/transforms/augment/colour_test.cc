// Colours and tables match their definitions, and their references where the image's size does not
// matter.
#include "transforms/augment/colour/colour.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "transforms/augment/colour/blend.h"
#include "transforms/augment/colour/lookup.h"

namespace stoker {
namespace {

using testing::Effort;
using testing::ForEachTarget;

// A tile with all greens and blues for one red.
std::vector<uint8_t> AllWithRed(int red) {
  std::vector<uint8_t> pixels(3 * 65536, static_cast<uint8_t>(red));
  for (size_t i = 0; i < 65536; ++i) {
    pixels[65536 + i] = static_cast<uint8_t>(i % 256);
    pixels[2 * 65536 + i] = static_cast<uint8_t>(i / 256);
  }
  return pixels;
}

constexpr ImageSize kAllSize{256, 256};

TEST(Colour, GrayIsExactForEveryColour) {
  const int step = Effort(256) == 256 ? 1 : 127;
  for (int red = 0; red < 256; red += step) {
    std::vector<uint8_t> wanted(65536);
    uint64_t sum = 0;
    for (int i = 0; i < 65536; ++i) {
      const int gray = (2989 * red + 5870 * (i % 256) + 1140 * (i / 256)) / 10000;
      wanted[static_cast<size_t>(i)] = static_cast<uint8_t>(gray);
      sum += static_cast<uint64_t>(gray);
    }
    ForEachTarget([&] {
      std::vector<uint8_t> pixels = AllWithRed(red);
      const Tile tile{pixels.data(), kAllSize};
      ASSERT_EQ(SumOfGray(tile), sum);
      Recolour(Grayscale{}, tile);
      for (size_t c = 0; c < 3; ++c) {
        ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), tile.plane(c))) << red;
      }
    });
  }
}

TEST(Colour, SaturationAndHueMatchTheReferenceForEveryColour) {
  const int step = Effort(256) == 256 ? 15 : 255;
  for (int red = 0; red < 256; red += step) {
    for (const float amount : {0.1F, 0.37F, 1.9F, 0.9999F}) {
      if (step == 255 && (amount < 1) == (red == 0)) continue;  // each amount once
      std::vector<uint8_t> blended = AllWithRed(red), turned = blended;
      RecolourPlain(AdjustSaturation{amount}, {blended.data(), kAllSize});
      RecolourPlain(AdjustHue{amount / 4}, {turned.data(), kAllSize});
      ForEachTarget([&] {
        std::vector<uint8_t> pixels = AllWithRed(red);
        Recolour(AdjustSaturation{amount}, {pixels.data(), kAllSize});
        ASSERT_TRUE(pixels == blended) << red << " by " << amount;
        pixels = AllWithRed(red);
        Recolour(AdjustHue{amount / 4}, {pixels.data(), kAllSize});
        ASSERT_TRUE(pixels == turned) << red << " by " << amount / 4;
      });
    }
  }
}

TEST(Colour, HueTurnsFromRedToGreenToBlue) {
  std::vector<uint8_t> pixels = {200, 200, 10, 30, 10, 30};  // two pixels: red 200, green 10 …
  const std::vector<uint8_t> before = pixels;
  const Tile tile{pixels.data(), {2, 1}};
  Recolour(AdjustHue{1.0F / 3}, tile);
  EXPECT_EQ(pixels, (std::vector<uint8_t>{10, 30, 200, 200, 10, 30}));
  Recolour(AdjustHue{-1.0F / 3}, tile);
  EXPECT_EQ(pixels, before);
}

TEST(Blend, UsesFusedMultiplyAdd) {
  EXPECT_EQ(Fused(0x1.000002p0F, 0x1.000002p0F, -0x1.000004p0F), 0x1p-46F);
  const BlendWeights blend(0.1F);
  for (int value = 0; value < 256; ++value) {
    for (int other = 0; other < 256; ++other) {
      const float product = static_cast<float>(value) * 0.1F;
      const float fused = std::fma(1 - 0.1F, static_cast<float>(other), product);
      ASSERT_EQ(blend(static_cast<float>(value), static_cast<float>(other)),
                static_cast<int>(fused));
    }
  }
}

TEST(Tables, MatchTheirDefinitions) {
  for (size_t v = 0; v < 256; ++v) {
    EXPECT_EQ(TableOf(Invert{})[v], 255 - v);
    EXPECT_EQ(TableOf(Posterize{8})[v], v);
    EXPECT_EQ(TableOf(Posterize{3})[v], v / 32 * 32);
    EXPECT_EQ(TableOf(Posterize{0})[v], 0);
    EXPECT_EQ(TableOf(Solarize{100.5F})[v], v >= 101 ? 255 - v : v);
    EXPECT_EQ(TableOf(AdjustBrightness{2})[v], std::min<size_t>(2 * v, 255));
    EXPECT_EQ(TableOf(AdjustBrightness{3e38F})[v], v == 0 ? 0 : 255);
    EXPECT_EQ(ContrastTable(1, 77.7F)[v], v);
    EXPECT_EQ(ContrastTable(0, 77.7F)[v], 77);
    EXPECT_EQ(AutoContrastTable({9, 9})[v], v);
  }
  for (size_t v = 0; v < 256; ++v) EXPECT_EQ(AutoContrastTable({0, 255})[v], v);
  const ValueTable stretched = AutoContrastTable({10, 61});  // × 5, or just below
  EXPECT_EQ(stretched[10], 0);
  EXPECT_EQ(stretched[11], 4);  // as torchvision's: 51 × (1 / 255) is above 1 / 5
  EXPECT_EQ(stretched[61], 254);
  EXPECT_EQ(stretched[62], 255);
}

TEST(Tables, EqualizeMatchesPillow) {
  Histogram histogram{};
  histogram[10] = 510;
  histogram[20] = 255;
  histogram[30] = 99;                                 // of the largest value: not counted
  const ValueTable table = EqualizeTable(histogram);  // a step is 3 pixels
  EXPECT_EQ(table[10], 0);
  EXPECT_EQ(table[11], 170);
  EXPECT_EQ(table[20], 170);
  EXPECT_EQ(table[30], 255);
  histogram = {};
  histogram[7] = 1000;
  for (size_t v = 0; v < 256; ++v) EXPECT_EQ(EqualizeTable(histogram)[v], v);
}

TEST(LookUp, EveryLengthMatchesTheReference) {
  ValueTable table;
  for (size_t v = 0; v < 256; ++v) table[v] = static_cast<uint8_t>(v * 167 + 13);
  std::vector<uint8_t> values(700);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * 7 + i / 256);
  ForEachTarget([&] {
    for (size_t count = 0; count <= 600; count += count < 200 ? 1 : 37) {
      std::vector<uint8_t> plain = values, fast = values;
      LookUpPlain(table, plain.data() + 3, count);
      LookUp(table, fast.data() + 3, count);
      ASSERT_TRUE(fast == plain) << count;
      ASSERT_EQ(FindRange(values.data() + 3, count), FindRangePlain(values.data() + 3, count));
      ASSERT_EQ(CountValues(values.data() + 3, count), CountValuesPlain(values.data() + 3, count));
    }
  });
}

}  // namespace
}  // namespace stoker
