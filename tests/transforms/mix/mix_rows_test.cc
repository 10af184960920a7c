#include "transforms/mix/mix_rows.h"
#include "core/batch/image.h"
#include "transforms/mix/draw_mix.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "core/numbers/half.h"
#include "tests/testing/on_target.h"

namespace stoker {
namespace {

constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};

// Runs on every instruction set that this machine has.
class Mixes : public testing::OnTarget {
 protected:
  static constexpr size_t kMargin = 64;

  // Returns any bits: numbers of every size, infinities, and NaN.
  std::vector<uint8_t> Random(size_t bytes) {
    std::vector<uint8_t> random(bytes + 2 * kMargin);
    for (uint8_t& byte : random) byte = static_cast<uint8_t>(random_());
    return random;
  }

  // Numbers such as images have.
  std::vector<uint8_t> Tame(const MixedRow& row, size_t rows) {
    if (row.dtype == DType::kU8) return Random(rows * row.bytes());
    std::vector<uint8_t> values(rows * row.bytes() + 2 * kMargin);
    std::normal_distribution<float> normal;
    const size_t size = SizeOf(row.dtype);
    for (size_t at = kMargin; at + size <= values.size() - kMargin; at += size) {
      const float value = normal(random_);
      const uint16_t half = row.dtype == DType::kF16 ? Float16Bits(value) : BFloat16Bits(value);
      if (row.dtype == DType::kF32) {
        std::memcpy(values.data() + at, &value, size);
      } else {
        std::memcpy(values.data() + at, &half, size);
      }
    }
    return values;
  }

  void ExpectSameAsPlain(const DrawnMix& mix, const MixedRow& row, size_t rows,
                         const std::vector<uint8_t>& values) {
    std::vector<uint8_t> plain = values, fast = values;
    MixRowsPlain(mix, row, rows, plain.data() + kMargin);
    MixRows(mix, row, rows, fast.data() + kMargin);
    ASSERT_TRUE(plain == fast) << NameOf(row.dtype) << " " << rows << " rows of " << row.planes
                               << " × " << row.height << " × " << row.width << " × " << row.values
                               << ", lam " << mix.lam << (mix.cut ? ", cut" : "");
  }

  std::mt19937 random_{7};
};

TEST_P(Mixes, EveryTypeAndLengthMatchesTheReference) {
  const double lams[] = {0, 1, 0.5, 0.3, 0.999999, 1e-9, 1e-300, 0.7071067811865476};
  for (const DType dtype : kDTypes) {
    size_t n = 0;
    for (size_t count = 1; count < 150; ++count) {
      const MixedRow row{.dtype = dtype, .values = count};
      const size_t rows = 1 + count % 4;
      const double lam = lams[n++ % std::size(lams)];
      ExpectSameAsPlain({false, lam, {}}, row, rows, Tame(row, rows));
      ExpectSameAsPlain({false, lam, {}}, row, rows, Random(rows * row.bytes()));
    }
    // Across the pieces that rows are worked on in.
    for (size_t count : {8191, 8192, 8193, 20001}) {
      const MixedRow row{.dtype = dtype, .values = count};
      ExpectSameAsPlain({false, 0.3, {}}, row, 3, Tame(row, 3));
      ExpectSameAsPlain({false, 0.3, {}}, row, 3, Random(3 * row.bytes()));
    }
  }
}

// All pairs of bytes, and weights that put sums on ties.
TEST_P(Mixes, EveryPairOfBytesMatchesTheReference) {
  std::vector<uint8_t> pairs(2 * 65536 + 2 * kMargin);
  for (size_t i = 0; i < 65536; ++i) {
    pairs[kMargin + i] = static_cast<uint8_t>(i);
    pairs[kMargin + 65536 + i] = static_cast<uint8_t>(i >> 8);
  }
  for (const double lam : {0.5, 0.25, 0.75, 0.125, 0.1, 1.0 / 3, 0.0, 1.0}) {
    ExpectSameAsPlain({false, lam, {}}, {.dtype = DType::kU8, .values = 65536}, 2, pairs);
  }
  MixRows({false, 0.5, {}}, {.dtype = DType::kU8, .values = 65536}, 2, pairs.data() + kMargin);
  EXPECT_EQ(pairs[kMargin + (3 << 8 | 2)], 2) << "2.5 is rounded to the even neighbour";
  EXPECT_EQ(pairs[kMargin + (4 << 8 | 3)], 4) << "and so is 3.5";
  EXPECT_EQ(pairs[kMargin + 0xffff], 255);
}

TEST_P(Mixes, BoxesMatchTheReference) {
  for (const DType dtype : kDTypes) {
    for (const MixedRow& row : {MixedRow{dtype, 1, 9, 13, 3}, MixedRow{dtype, 3, 9, 13, 1},
                                MixedRow{dtype, 1, 5, 4099, 3}, MixedRow{dtype, 1, 1, 1, 1}}) {
      for (size_t rows : {1, 2, 5}) {
        const std::vector<uint8_t> values = Random(rows * row.bytes());
        const auto width = static_cast<int>(row.width), height = static_cast<int>(row.height);
        for (const Rect& box :
             {Rect{0, 0, width, height}, Rect{}, Rect{width / 3, height / 2, 0, 1},
              Rect{width / 3, height / 2, width / 2, height / 3}, Rect{0, 0, 1, 1},
              Rect{width - 1, 0, 1, height}, Rect{0, height - 1, width, 1}}) {
          ExpectSameAsPlain({true, 0.3, box}, row, rows, values);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Mixes, testing::EachTarget(), testing::NameOfTarget);

// The values are computed by hand, so that the kernel and its reference do not err together.
TEST(MixRows, RowsAreMixedWithTheRowBefore) {
  std::vector<float> values = {1, 10, 2, 20, 4, 40};  // three rows of two
  MixRows({false, 0.75, {}}, {.dtype = DType::kF32, .values = 2}, 3, values.data());
  EXPECT_EQ(values, (std::vector<float>{1.75, 17.5, 1.75, 17.5, 3.5, 35}));

  std::vector<uint8_t> images = {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};  // two of 2 × 3 × 1
  MixRows({true, 0.5, {1, 0, 2, 1}}, {DType::kU8, 1, 2, 3, 1}, 2, images.data());
  EXPECT_EQ(images, (std::vector<uint8_t>{1, 12, 13, 4, 5, 6, 11, 2, 3, 14, 15, 16}));

  std::vector<float> one = {1, 2};
  MixRows({false, 0.25, {}}, {.dtype = DType::kF32, .values = 2}, 1, one.data());
  EXPECT_EQ(one, (std::vector<float>{1, 2})) << "the only row is mixed with itself";
  MixRows({false, 0.25, {}}, {.dtype = DType::kF32, .values = 2}, 0, one.data());
  EXPECT_EQ(one, (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace stoker
