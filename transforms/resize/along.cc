#include "transforms/resize/along.h"

#include <algorithm>

namespace stoker {

namespace {

size_t Blocks(const AxisTaps& columns) {
  return (static_cast<size_t>(columns.count) + kAlongPixels - 1) / kAlongPixels;
}

constexpr int kPart = 2 * kAlongPixels;  // number of indices, of weights, and of their high parts

int PairValues(const AxisTaps& columns) { return (columns.high != nullptr ? 3 : 2) * kPart; }

size_t PairBytes(const AxisTaps& columns) {
  return Blocks(columns) * static_cast<size_t>(columns.pairs * PairValues(columns)) *
         sizeof(int16_t);
}

struct Window {
  int begin, end;  // samples
};

// Returns the memory for the pixels of a block.
Window WindowOf(const AxisTaps& columns, bool mirror, int block) {
  const int last = columns.count - 1;
  const int left = block * kAlongPixels, right = std::min(left + kAlongPixels - 1, last);
  return {columns.starts[mirror ? last - right : left],
          columns.starts[mirror ? last - left : right] + 2 * columns.pairs};
}

int LongestWindow(const AxisTaps& columns, bool mirror) {
  int longest = 0;
  for (int block = 0; block < static_cast<int>(Blocks(columns)); ++block) {
    const Window window = WindowOf(columns, mirror, block);
    longest = std::max(longest, window.end - window.begin);
  }
  return longest;
}

}  // namespace

size_t AlongBytes(const AxisTaps& columns, bool mirror) {
  if (LongestWindow(columns, mirror) > kAlongWindow) return 0;
  return PairBytes(columns) + Blocks(columns) * sizeof(int32_t);
}

Along PlanAlong(const AxisTaps& columns, bool mirror, uint8_t* memory) {
  auto* const all = reinterpret_cast<int16_t*>(memory);
  auto* const windows = reinterpret_cast<int32_t*>(memory + PairBytes(columns));
  const int blocks = static_cast<int>(Blocks(columns)), last = columns.count - 1;
  for (int b = 0; b < blocks; ++b) windows[b] = WindowOf(columns, mirror, b).begin;

  const int pair = PairValues(columns);
  for (int i = 0; i < blocks * kAlongPixels; ++i) {
    const int x = mirror ? last - i : i, b = i / kAlongPixels;
    const bool there = i <= last;
    const ptrdiff_t first = ptrdiff_t{x} * 2 * columns.pairs;
    const int start = there ? columns.starts[x] - windows[b] : 0;
    int16_t* to = all + ptrdiff_t{b} * columns.pairs * pair + i % kAlongPixels * 2;
    for (int p = 0; p < columns.pairs; ++p, to += pair) {
      to[0] = static_cast<int16_t>(start + 2 * p);
      to[1] = static_cast<int16_t>(start + 2 * p + 1);
      for (int t = 0; t < 2; ++t) {
        const ptrdiff_t at = first + 2 * p + t;
        to[kPart + t] = there ? columns.weights[at] : int16_t{0};
        if (columns.high != nullptr) to[2 * kPart + t] = there ? columns.high[at] : int16_t{0};
      }
    }
  }
  return {windows, all, blocks, LongestWindow(columns, mirror) <= kAlongWindow / 2};
}

}  // namespace stoker
