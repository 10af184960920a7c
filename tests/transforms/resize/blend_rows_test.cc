#include "transforms/resize/strip/blend_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/on_target.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using testing::Random;

class BlendsRows : public testing::OnTarget {};

// Weights whose results reach from far below 0 to far above 255.
TEST_P(BlendsRows, LikeTheReference) {
  Random random(1);
  for (int n = 0; n < ::stoker::testing::Effort(400); ++n) {
    const int pairs = random.Between(1, 9), count = random.Between(1, 40);
    const int first = random.Between(0, count - 1), top = random.Between(0, 5);
    std::vector<int32_t> starts(static_cast<size_t>(count));
    int rows = top;
    for (int32_t& start : starts) start = rows += random.Between(0, 2);
    std::vector<int16_t> low(static_cast<size_t>(2 * count * pairs)), high(low.size());
    const bool fine = random.OneIn(2);
    const int most = fine ? (1 << 23) / (2 * pairs) : 32767;  // sums fit into 32 bits
    for (size_t i = 0; i < low.size(); ++i) {
      const int weight = random.Between(-most, most);
      low[i] = static_cast<int16_t>(fine ? weight & ((1 << kHighShift) - 1) : weight);
      high[i] = static_cast<int16_t>(weight >> kHighShift);
    }
    const ptrdiff_t bytes = random.Between(1, 200), stride = bytes + random.Between(0, 100);
    std::vector<uint8_t> source(static_cast<size_t>((rows - top + 2 * pairs) * stride) +
                                kBlendRowsOver);
    const bool extremes = random.OneIn(2);
    for (uint8_t& b : source) {
      b = static_cast<uint8_t>(extremes ? 255 * random.OneIn(2) : random.Between(0, 255));
    }
    RowBlend blend;
    blend.source = source.data();
    blend.source_stride = stride;
    blend.top = top;
    blend.taps = {starts.data(), low.data(), count, pairs, random.Between(fine ? 19 : 14, 22)};
    if (fine) blend.taps.high = high.data();
    blend.first = first;
    blend.count = random.Between(1, count - first);
    blend.bytes = bytes;
    blend.out_stride = bytes + kBlendRowsOver;
    std::vector<uint8_t> plain(static_cast<size_t>(blend.count * blend.out_stride));
    std::vector<uint8_t> fast(plain.size());
    blend.out = plain.data();
    BlendRowsPlain(blend);
    blend.out = fast.data();
    BlendRows(blend);
    for (int r = 0; r < blend.count; ++r) {
      const auto at = r * blend.out_stride;
      ASSERT_TRUE(std::equal(plain.begin() + at, plain.begin() + at + bytes, fast.begin() + at))
          << pairs << " pairs, " << bytes << " bytes, row " << r;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, BlendsRows, testing::EachTarget(), testing::NameOfTarget);

}  // namespace
}  // namespace stoker
