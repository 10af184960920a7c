#include "transforms/resize/along.h"

#include <algorithm>

namespace stoker {

namespace {

size_t Blocks(const AxisTaps& columns) {
  return (static_cast<size_t>(columns.count) + kAlongPixels - 1) / kAlongPixels;
}

size_t PairBytes(const AxisTaps& columns) {
  return Blocks(columns) * static_cast<size_t>(columns.pairs) * 4 * kAlongPixels * sizeof(int16_t);
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

  constexpr int kPair = 4 * kAlongPixels;
  for (int i = 0; i < blocks * kAlongPixels; ++i) {
    const int x = mirror ? last - i : i, b = i / kAlongPixels;
    const bool there = i <= last;
    const int16_t* weights = columns.weights + ptrdiff_t{there ? x : 0} * 2 * columns.pairs;
    const int start = there ? columns.starts[x] - windows[b] : 0;
    int16_t* to = all + ptrdiff_t{b} * columns.pairs * kPair + i % kAlongPixels * 2;
    for (int p = 0; p < columns.pairs; ++p, to += kPair) {
      to[0] = static_cast<int16_t>(start + 2 * p);
      to[1] = static_cast<int16_t>(start + 2 * p + 1);
      to[2 * kAlongPixels] = there ? weights[2 * p] : int16_t{0};
      to[2 * kAlongPixels + 1] = there ? weights[2 * p + 1] : int16_t{0};
    }
  }
  along = {windows, all, blocks, longest <= kAlongWindow / 2};
  return true;
}

}  // namespace stoker
