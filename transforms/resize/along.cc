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

}  // namespace

size_t AlongBytes(const AxisTaps& columns) {
  return PairBytes(columns) + Blocks(columns) * sizeof(int32_t);
}

bool PlanAlong(const AxisTaps& columns, bool mirror, uint8_t* memory, Along& along) {
  auto* const all = reinterpret_cast<int16_t*>(memory);
  auto* const windows = reinterpret_cast<int32_t*>(memory + PairBytes(columns));
  const int blocks = static_cast<int>(Blocks(columns)), last = columns.count - 1;
  int longest = 0;
  for (int b = 0; b < blocks; ++b) {
    const int left = b * kAlongPixels, right = std::min(left + kAlongPixels - 1, last);
    const int first = columns.starts[mirror ? last - right : left];
    const int end = columns.starts[mirror ? last - left : right] + 2 * columns.pairs;
    longest = std::max(longest, end - first);
    windows[b] = first;
  }
  if (longest > kAlongWindow) return false;

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
  along = {windows, all, blocks, longest <= kAlongWindow / 2};
  return true;
}

}  // namespace stoker
