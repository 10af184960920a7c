#include "transforms/resize/emit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/numbers/half.h"
#include "tests/testing/on_target.h"

namespace stoker {
namespace {

// Returns the number that 16 bits stand for, as a double.
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

TEST(Half, RoundsToTheNearestBinary16) { ExpectNearest(Float16Bits, 10, -14, 0x7c00); }

TEST(Half, RoundsToTheNearestBFloat16) {
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

TEST(Half, EveryValueRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = Float16Value(half), brain = BFloat16Value(half);
    if (std::isnan(value)) {
      ASSERT_GT(bits & 0x7fff, 0x7c00U);
    } else {
      ASSERT_EQ(Float16Bits(value), half) << value;
    }
    if (std::isnan(brain)) {
      ASSERT_GT(bits & 0x7fff, 0x7f80U);
    } else if (std::isnormal(brain) || brain == 0 || std::isinf(brain)) {
      ASSERT_EQ(BFloat16Bits(brain), half) << brain;
    }
  }
  EXPECT_EQ(Float16Value(0x3c00), 1.0F);
  EXPECT_EQ(Float16Value(0xc100), -2.5F);
  EXPECT_EQ(Float16Value(0x0001), 0x1p-24F);
  EXPECT_EQ(BFloat16Value(0xc020), -2.5F);
  EXPECT_EQ(Float16Bits(NAN), 0x7e00);
  EXPECT_EQ(BFloat16Bits(NAN), 0x7fc0);
}

constexpr DType kDTypes[] = {DType::kU8, DType::kF32, DType::kF16, DType::kBF16};
constexpr Layout kLayouts[] = {Layout::kNhwc, Layout::kNchw};

// Emits one image into a row of a batch that is larger, so that the frame around it can be checked.
struct Rows {
  Rows(const PixelOutput& output, int width, int height, size_t misaligned)
      : format(output, {width, height}),
        bytes(static_cast<size_t>(width * height * 3) * SizeOf(output.dtype) + 128, 0x5a),
        first(64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64 + misaligned) {}
  uint8_t* At(ptrdiff_t x, ptrdiff_t y) {
    return bytes.data() + first + y * format.down + x * format.along;
  }
  RowFormat format;
  std::vector<uint8_t> bytes;
  size_t first;
};

// Makes finished pixels as a strip has them.
class Emits : public testing::OnTarget {
 protected:
  static constexpr int kRows = 5, kMaxPixels = 150, kStride = 3 * kMaxPixels + 17;

  void SetUp() override {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<uint8_t>(i * 7 + i / 256);
  }

  struct Case {
    int channels, pixels;
    size_t misaligned = 0;
    bool stream = false;
    bool upwards = false;
  };

  void ExpectSameAsPlain(const Case& c, const PixelOutput& output) {
    const bool planes = c.channels == 3 && output.layout == Layout::kNchw;
    const ResampledRows rows{values_.data(), kStride, planes ? kMaxPixels + 5 : 0,
                             c.channels,     kRows,   c.pixels};
    Rows plain(output, c.pixels + 3, kRows + 2, c.misaligned);
    Rows fast(output, c.pixels + 3, kRows + 2, c.misaligned);
    uint8_t* const plain_to = plain.At(1, c.upwards ? kRows : 1);
    uint8_t* const fast_to = fast.At(1, c.upwards ? kRows : 1);
    if (c.upwards) plain.format.down = fast.format.down = -plain.format.down;
    fast.format.stream = c.stream;
    EmitRowsPlain(rows, plain.format, plain_to);
    EmitRows(rows, fast.format, fast_to);
    FlushEmitted();
    const std::span<const uint8_t> wanted = std::span(plain.bytes).subspan(plain.first);
    const std::span<const uint8_t> got = std::span(fast.bytes).subspan(fast.first);
    const size_t bytes = std::min(wanted.size(), got.size());
    ASSERT_TRUE(std::ranges::equal(wanted.first(bytes), got.first(bytes)))
        << NameOf(output.dtype) << " " << NameOf(output.layout) << " " << c.channels
        << " channels, " << c.pixels << " pixels, misaligned by " << c.misaligned << " scale "
        << output.scale[0] << " bias " << output.bias[0];
    ASSERT_TRUE(std::all_of(fast.bytes.begin(),
                            fast.bytes.begin() + static_cast<ptrdiff_t>(fast.first),
                            [](uint8_t b) { return b == 0x5a; }));
  }

  std::vector<uint8_t> values_ = std::vector<uint8_t>(kRows * kStride + kEmitOverread);
};

TEST_P(Emits, EveryTypeLayoutAndWidthMatchesTheReference) {
  constexpr float kScale[3] = {0.017f, 0.0175f, -0.0174f}, kBias[3] = {-2.1f, 2.03f, 0};
  for (const DType dtype : kDTypes) {
    for (const Layout layout : kLayouts) {
      const PixelOutput output{nullptr, dtype, kScale, kBias, layout};
      for (int pixels = 1; pixels <= kMaxPixels; pixels += pixels < 70 ? 1 : 9) {
        const bool odd = pixels % 2 == 1;
        ExpectSameAsPlain({odd ? 1 : 3, pixels, 0, odd, !odd}, output);
        ExpectSameAsPlain({odd ? 3 : 1, pixels, 1, !odd, odd}, output);
      }
      for (size_t misaligned = 0; misaligned < 64; ++misaligned) {
        // Then rows are of whole lines, and the first pixel is anywhere in one.
        ExpectSameAsPlain({3, 64 - 3, misaligned, true}, output);
        ExpectSameAsPlain({1, 128 - 3, misaligned, true}, output);
      }
    }
  }
}

// Returns a number of random bits whose magnitude is below 2.
float Small(std::mt19937& random) {
  return std::bit_cast<float>(static_cast<uint32_t>(random()) & 0xbfffffffU);
}

// Scales and biases put the 256 values on ties, among subnormal numbers and past the largest.
TEST_P(Emits, HostileNumbersMatchTheReference) {
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
          ExpectSameAsPlain({3, 111}, {nullptr, dtype, scales, biases, layout});
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Emits, testing::EachTarget(), testing::NameOfTarget);

}  // namespace
}  // namespace stoker
