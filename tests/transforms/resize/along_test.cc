#include "transforms/resize/along.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/memory/buffer.h"

namespace stoker {
namespace {

// Applies the tables to samples whose values are their positions: the sum of position × weight.
int64_t FromTables(const Along& along, const AxisTaps& taps, int pixel) {
  const int block = pixel / kAlongPixels, parts = taps.high != nullptr ? 3 : 2;
  int64_t sum = 0;
  for (int p = 0; p < taps.pairs; ++p) {
    const int16_t* pair = along.pairs +
                          (ptrdiff_t{block} * taps.pairs + p) * parts * 2 * kAlongPixels +
                          pixel % kAlongPixels * 2;
    for (int t = 0; t < 2; ++t) {
      EXPECT_GE(pair[t], 0);
      EXPECT_LT(pair[t], along.narrow ? kAlongWindow / 2 : kAlongWindow);
      const int high = taps.high != nullptr ? pair[4 * kAlongPixels + t] : 0;
      const int64_t weight = pair[2 * kAlongPixels + t] + high * (1 << kHighShift);
      sum += weight * (along.windows[block] + pair[t]);
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
    AxisSpec spec{in, out, 0, out, 0, in, true};
    if (random() % 2 == 0) spec.interpolation = Interpolation::kBicubic;
    ASSERT_TRUE(filter.Compute(spec).ok());
    const AxisTaps& taps = filter.taps();
    const size_t bytes = AlongBytes(taps, mirror);
    if (bytes == 0) {
      ++too_long;
      ASSERT_GT(in, out);
      continue;
    }
    ASSERT_TRUE(memory.Grow(bytes).ok());
    const Along along = PlanAlong(taps, mirror, memory.data());
    ++fitted;
    narrow += along.narrow;
    ASSERT_EQ(along.blocks, (out + kAlongPixels - 1) / kAlongPixels);
    for (int i = 0; i < along.blocks * kAlongPixels; ++i) {
      int64_t sum = 0;
      const int x = mirror ? out - 1 - i : i;
      for (int t = 0; i < out && t < 2 * taps.pairs; ++t) {
        const ptrdiff_t at = ptrdiff_t{x} * 2 * taps.pairs + t;
        const int high = taps.high != nullptr ? taps.high[at] : 0;
        const int64_t weight = taps.weights[at] + high * (1 << kHighShift);
        sum += weight * (taps.starts[x] + t);
      }
      ASSERT_EQ(FromTables(along, taps, i), sum) << in << " → " << out << " pixel " << i;
    }
  }
  EXPECT_GT(fitted, 50);
  EXPECT_GT(too_long, 10);
  EXPECT_GT(narrow, 10);
}

}  // namespace
}  // namespace stoker
