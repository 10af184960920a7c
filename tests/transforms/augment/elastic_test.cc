#include "transforms/augment/geometry/elastic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory/memory_budget.h"
#include "transforms/augment/geometry/border.h"

namespace stoker {
namespace {

struct Field {
  Field(const ElasticNoise& noise, ImageSize of) : size(of), memory(BytesOf(noise, of)) {
    by = MakeDisplacement(noise, size, reinterpret_cast<uint8_t*>(memory.data()));
  }
  static size_t BytesOf(const ElasticNoise& noise, ImageSize size) {
    return DisplacementBytes(noise, size) / sizeof(float);
  }
  ImageSize size;
  std::vector<float> memory;
  Displacement by;
};

TEST(Elastic, NoiseIsUniformAndIndependent) {
  const ImageSize size{301, 200};
  const int count = size.width * size.height;
  const Field one({.key = 3, .alpha = 2, .sigma = 0}, size);
  const Field other({.key = uint64_t{3} << 32, .alpha = 2, .sigma = 0}, size);
  double sum = 0, squares = 0, with_y = 0, with_next = 0, with_other = 0, across_rows = 0;
  for (int i = 0; i < count; ++i) {
    const double x = one.by.x[i];
    EXPECT_TRUE(x >= -1 && x < 1) << x;
    sum += x;
    squares += x * x;
    with_y += x * one.by.y[i];
    with_next += i == 0 ? 0 : x * one.by.x[i - 1];
    with_other += x * other.by.x[i];
    across_rows += i < size.width ? 0 : x * one.by.y[i - size.width];
  }
  const double of_mean = 5 / std::sqrt(3.0 * count), of_product = 5 / (3 * std::sqrt(count));
  EXPECT_NEAR(sum / count, 0, of_mean);
  EXPECT_NEAR(squares / count, 1 / 3.0, of_product);
  EXPECT_NEAR(with_y / count, 0, of_product);
  EXPECT_NEAR(with_next / count, 0, of_product);
  EXPECT_NEAR(with_other / count, 0, of_product);
  EXPECT_NEAR(across_rows / count, 0, of_product);
}

TEST(Elastic, NumbersAreTheSameOnEveryMachine) {
  const ImageSize size{70, 50};
  const Field field({.key = 0x123456789abcdef0, .alpha = 50, .sigma = 5}, size);
  EXPECT_EQ(field.by.x[0], 0x1.cb653cp-3F);
  EXPECT_EQ(field.by.x[20 * 70 + 30], 0x1.b4349ap-7F);
  EXPECT_EQ(field.by.y[0], 0x1.95e43cp+1F);
  EXPECT_EQ(field.by.y[49 * 70 + 69], -0x1.9978dep+0F);
}

// torchvision's gaussian_blur of the noise, in binary64.
TEST(Elastic, NoiseIsBlurred) {
  for (const ImageSize size : {ImageSize{1, 1}, {7, 3}, {65, 33}, {40, 90}}) {
    for (const double sigma : {0.05, 0.6, 2.0, 5.0, 12.3}) {
      const Field plain({.key = 9, .alpha = 2, .sigma = 0}, size);
      const Field blurred({.key = 9, .alpha = 50, .sigma = sigma}, size);
      int taps = static_cast<int>(8 * sigma + 1);
      if (taps % 2 == 0) ++taps;
      std::vector<double> weights(static_cast<size_t>(taps));
      double total = 0;
      for (int t = 0; t < taps; ++t) {
        const double away = (t - taps / 2) / sigma;
        total += weights[static_cast<size_t>(t)] = std::exp(-away * away / 2);
      }
      for (int n = 0; n < 40; ++n) {
        const int x = n * 31 % size.width, y = n * 17 % size.height;
        double sum_x = 0, sum_y = 0;
        for (int i = 0; i < taps; ++i) {
          for (int j = 0; j < taps; ++j) {
            const int64_t at = Reflected(y + i - taps / 2, size.height) * size.width +
                               Reflected(x + j - taps / 2, size.width);
            const double weight = weights[static_cast<size_t>(i)] * weights[static_cast<size_t>(j)];
            sum_x += weight * plain.by.x[at];
            sum_y += weight * plain.by.y[at];
          }
        }
        const int at = y * size.width + x;
        ASSERT_NEAR(blurred.by.x[at], 25 * sum_x / (total * total), 1e-4) << sigma;
        ASSERT_NEAR(blurred.by.y[at], 25 * sum_y / (total * total), 1e-4) << sigma;
      }
    }
  }
}

TEST(Elastic, TheLastTwoAreMadeOnce) {
  MemoryBudget budget(1 << 20);
  Displacements displacements(budget);
  const ElasticNoise one{1, 20, 2}, other{2, 20, 2}, third{3, 20, 1};
  constexpr ImageSize kSize{20, 10}, kTurned{10, 20};
  const float* const first = displacements.Get(one, kSize)->x;
  const float* const second = displacements.Get(other, kSize)->x;
  EXPECT_NE(first, second);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(displacements.Get(one, kSize)->x, first);
    EXPECT_EQ(displacements.Get(other, kSize)->x, second);
  }
  const Displacement of_third = displacements.Get(third, kTurned).value();
  const Field field(third, kTurned);
  EXPECT_TRUE(std::equal(field.by.x, field.by.x + 200, of_third.x));
  EXPECT_TRUE(std::equal(field.by.y, field.by.y + 200, of_third.y));
  const Displacement again = displacements.Get(one, kSize).value();
  const Field wanted(one, kSize);
  EXPECT_TRUE(std::equal(wanted.by.x, wanted.by.x + 200, again.x));
  EXPECT_EQ(displacements.Get(one, {2000, 2000}).error().code, Code::kResourceExhausted);
  const Displacement after = displacements.Get(one, kSize).value();
  EXPECT_TRUE(std::equal(wanted.by.x, wanted.by.x + 200, after.x));
}

}  // namespace
}  // namespace stoker
