#include "transforms/resize/emit.h"

#include <gtest/gtest.h>
#define HWY_WANT_AVX3_DL 1  // as the library is built
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "transforms/resize/half.h"

namespace stoker {
namespace {

// The number that 16 bits stand for, in a double.
double Value(uint16_t bits, int fraction, int least) {
  const int exponent = (bits & 0x7fff) >> fraction, rest = bits & ((1 << fraction) - 1);
  const double size = exponent == 0
                          ? std::ldexp(rest, least - fraction)
                          : std::ldexp((1 << fraction) + rest, exponent - 1 + least - fraction);
  return (bits & 0x8000) != 0 ? -size : size;
}

void ExpectNearest(uint16_t (*round)(float), int fraction, int least, uint16_t infinity) {
  for (uint16_t bits = 0; bits < infinity; ++bits) {
    const double low = Value(bits, fraction, least), high = Value(bits + 1, fraction, least);
    const auto next = static_cast<uint16_t>(bits + 1), even = static_cast<uint16_t>(next & ~1);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(middle, (low + high) / 2);  // binary32 has it
    ASSERT_EQ(round(static_cast<float>(low)), bits);
    ASSERT_EQ(round(std::nextafterf(middle, 0)), bits);
    ASSERT_EQ(round(middle), even);
    ASSERT_EQ(round(std::nextafterf(middle, INFINITY)), next);
    ASSERT_EQ(round(-middle), 0x8000 | even);
  }
  ASSERT_EQ(round(std::numeric_limits<float>::max()), infinity);
  ASSERT_EQ(round(-INFINITY), 0x8000 | infinity);
  ASSERT_EQ(round(-0.0F), 0x8000);
}

TEST(Half, IsTheNearestBinary16) { ExpectNearest(Float16Bits, 10, -14, 0x7c00); }

TEST(Half, IsTheNearestBFloat16) {
  for (uint32_t bits = 0; bits < 0x7f800000; bits += 0x8001) {  // denormal halves are not exact
    const auto value = std::bit_cast<float>(bits);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    ASSERT_EQ(BFloat16Bits(value), rounded) << bits;
    ASSERT_EQ(BFloat16Bits(-value), 0x8000 | rounded) << bits;
  }
  for (uint32_t upper = 0; upper < 0x7f80; ++upper) {
    const uint32_t middle = upper << 16 | 0x8000;
    ASSERT_EQ(BFloat16Bits(std::bit_cast<float>(upper << 16)), upper);
    ASSERT_EQ(BFloat16Bits(std::bit_cast<float>(middle - 1)), upper);
    ASSERT_EQ(BFloat16Bits(std::bit_cast<float>(middle)), (upper + 1) & ~1U);
    ASSERT_EQ(BFloat16Bits(std::bit_cast<float>(middle + 1)), upper + 1);
  }
  EXPECT_EQ(BFloat16Bits(INFINITY), 0x7f80);
  EXPECT_EQ(BFloat16Bits(-0.0F), 0x8000);
}

// Where in a row of a batch: one image, with a frame around the block to see that it holds.
struct Image {
  static constexpr int kWidth = kStripPixels + 5, kHeight = kStripRows + 3;
  explicit Image(const PixelOutput& output)
      : format(output, {kWidth, kHeight}),
        bytes(static_cast<size_t>(kWidth * kHeight * 3) * SizeOf(output.dtype) + 1, 0x5a) {}
  uint8_t* At(int x, int y) {  // of no alignment
    return bytes.data() + 1 + y * format.down + x * format.along;
  }
  RowFormat format;
  std::vector<uint8_t> bytes;
};

class Emits : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  void ExpectSameAsPlain(const Block& block, const PixelOutput& output, bool upwards) {
    Image plain(output), fast(output);
    const int y = upwards ? block.rows : 1;
    if (upwards) plain.format.down = fast.format.down = -plain.format.down;
    const auto at = [&](Image& image) {
      return image.At(2, 0) + (upwards ? -y : y) * image.format.down;
    };
    EmitBlockPlain(block, plain.format, at(plain));
    EmitBlock(block, fast.format, at(fast));
    ASSERT_EQ(plain.bytes, fast.bytes)
        << NameOf(output.dtype) << " " << NameOf(output.layout) << " " << block.channels
        << " channels, " << block.rows << " rows of " << block.pixels << ", scale "
        << output.scale[0] << " bias " << output.bias[0];
  }
};

constexpr DType kDTypes[] = {DType::kU8, DType::kF32, DType::kF16, DType::kBF16};
constexpr Layout kLayouts[] = {Layout::kNhwc, Layout::kNchw};

TEST_P(Emits, EveryTypeLayoutAndSizeAsThePlainTwin) {
  std::mt19937 random(3);
  alignas(64) uint8_t columns[3 * kStripPixels * kStripRows];
  for (uint8_t& value : columns) value = static_cast<uint8_t>(random());
  constexpr float kScale[3] = {0.017f, 0.0175f, -0.0174f}, kBias[3] = {-2.1f, 2.03f, 0};
  for (const DType dtype : kDTypes) {
    for (const Layout layout : kLayouts) {
      for (int rows = 1; rows <= kStripRows; rows += rows < 18 ? 1 : 7) {
        for (int pixels = 1; pixels <= kStripPixels; ++pixels) {
          const Block block{columns, pixels % 2 == 0 ? 1 : 3, rows, pixels};
          const Block other{columns, pixels % 2 == 0 ? 3 : 1, rows, pixels};
          ExpectSameAsPlain(block, {nullptr, dtype, kScale, kBias, layout}, rows % 3 == 0);
          ExpectSameAsPlain(other, {nullptr, dtype, kScale, kBias, layout}, rows % 3 != 0);
        }
      }
    }
  }
}

// Of any bits that are below 2.
float Small(std::mt19937& random) {
  return std::bit_cast<float>(static_cast<uint32_t>(random()) & 0xbfffffffU);
}

// Scales and biases that put the 256 values on ties, among the subnormal and past the largest.
TEST_P(Emits, HostileNumbersAsThePlainTwin) {
  alignas(64) uint8_t columns[3 * kStripPixels * kStripRows];
  for (size_t i = 0; i < sizeof(columns); ++i) columns[i] = static_cast<uint8_t>(i * 7 + i / 256);
  const float numbers[] = {0x1p-11f, 0x1p-8f,   0x1p-9f,   0x1p-24f,  0x1p-25f,  0x1.8p-26f,
                           0x1p-14f, 0x1p-15f,  0x1p-126f, 0x1p-133f, 0x1p-140f, 0x1p-149f,
                           257.f,    256.9f,    0x1p8f,    0x1.01p8f, 0x1p120f,  0x1.fep119f,
                           1.f,      1 / 255.f, 0x1.ffp7f, 0.f,       65520.f,   65519.99f};
  std::mt19937 random(4);
  for (const float scale : numbers) {
    for (const float bias : numbers) {
      const float scales[3] = {scale, -scale, Small(random)};
      const float biases[3] = {-bias, bias, Small(random)};
      for (const DType dtype : kDTypes) {
        for (const Layout layout : kLayouts) {
          ExpectSameAsPlain({columns, 3, kStripRows, kStripPixels},
                            {nullptr, dtype, scales, biases, layout}, false);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Emits, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return hwy::TargetName(info.param); });

}  // namespace
}  // namespace stoker
