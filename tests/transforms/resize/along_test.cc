#include "transforms/resize/along.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/buffer.h"

namespace stoker {
namespace {

// Applies the tables to samples whose values are their positions: the sum of position × weight.
int64_t FromTables(const Along& along, int pairs, int pixel) {
  const int block = pixel / kAlongPixels;
  int64_t sum = 0;
  for (int p = 0; p < pairs; ++p) {
    const int16_t* pair =
        along.pairs + (ptrdiff_t{block} * pairs + p) * 4 * kAlongPixels + pixel % kAlongPixels * 2;
    for (int t = 0; t < 2; ++t) {
      EXPECT_GE(pair[t], 0);
      EXPECT_LT(pair[t], along.narrow ? kAlongWindow / 2 : kAlongWindow);
      sum += int64_t{pair[2 * kAlongPixels + t]} * (along.windows[block] + pair[t]);
    }
  }
  return sum;
}

TEST(Along, TablesMatchTheTaps) {
  std::mt19937 random(3);
  MemoryBudget budget(uint64_t{1} << 30);
  AxisFilter filter(budget);
  GrowingBuffer memory(budget);
  int fitted = 0, too_long = 0, narrow = 0;
  for (int n = 0; n < 300; ++n) {
    const int in = 1 + static_cast<int>(random() % 400), out = 1 + static_cast<int>(random() % 200);
    const bool mirror = random() % 2 == 0;
    ASSERT_TRUE(filter.Compute({in, out, 0, out, 0, in, true}).ok());
    const AxisTaps& taps = filter.taps();
    ASSERT_TRUE(memory.Grow(AlongBytes(taps)).ok());
    Along along;
    if (!PlanAlong(taps, mirror, memory.data(), along)) {
      ++too_long;
      ASSERT_GT(in, 2 * out);
      continue;
    }
    ++fitted;
    narrow += along.narrow;
    ASSERT_EQ(along.blocks, (out + kAlongPixels - 1) / kAlongPixels);
    for (int i = 0; i < along.blocks * kAlongPixels; ++i) {
      int64_t sum = 0;
      const int x = mirror ? out - 1 - i : i;
      for (int t = 0; i < out && t < 2 * taps.pairs; ++t) {
        sum += int64_t{taps.weights[x * 2 * taps.pairs + t]} * (taps.starts[x] + t);
      }
      ASSERT_EQ(FromTables(along, taps.pairs, i), sum) << in << " → " << out << " pixel " << i;
    }
  }
  EXPECT_GT(fitted, 50);
  EXPECT_GT(too_long, 10);
  EXPECT_GT(narrow, 10);
}

}  // namespace
}  // namespace stoker
