#include <algorithm>
#include <cstdlib>
#include <limits>

#include "transforms/jpeg/fast/pixels/reduced_dct.h"

namespace stoker::jpeg {

namespace {

// Transforms eight values, `step` apart, to `side` results side by side, which are scaled: see the
// shifts below.
void Line(const int* v, int step, int side, int64_t* out) {
  const auto at = [&](int i) { return int64_t{v[i * step]}; };
  if (side == 2) {
    const int64_t even = at(0) * 32768;
    const int64_t odd = at(1) * 29692 - at(3) * 10426 + at(5) * 6967 - at(7) * 5906;
    out[0] = even + odd;
    out[1] = even - odd;
    return;
  }
  const int64_t dc = at(0) * 16384, turn = at(2) * 15137 - at(6) * 6270;
  const int64_t outer = at(1) * 20995 + at(3) * 7373 - at(5) * 4926 - at(7) * 4176;
  const int64_t inner = at(1) * 8697 - at(3) * 17799 + at(5) * 11893 - at(7) * 1730;
  out[0] = dc + turn + outer;
  out[1] = dc - turn + inner;
  out[2] = dc - turn - inner;
  out[3] = dc + turn - outer;
}

// The sums of numbers in range fit into 32 bits; those of others wrap, as in vectors.
int Shifted(int64_t value, int64_t rounding, int shift) {
  return static_cast<int32_t>(value + rounding) >> shift;
}

uint8_t SampleOf(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

}  // namespace

uint8_t FlatSample(int dequantised_dc) { return SampleOf(((dequantised_dc + 4) >> 3) + 128); }

uint8_t MeanOfBlock(int dequantised_dc) {
  const int wrapped = (((dequantised_dc + 4) >> 3) & 1023) ^ 512;
  return SampleOf(wrapped - 512 + 128);
}

bool ReducedBlockPlain(const int* dequantised, int side, uint8_t* out, ptrdiff_t stride) {
  if (side == 1) {
    out[0] = MeanOfBlock(dequantised[0]);
    return true;
  }
  constexpr int kLeast = std::numeric_limits<int16_t>::min();
  constexpr int kMost = std::numeric_limits<int16_t>::max();
  const int first = side == 4 ? 12 : 13, second = side == 4 ? 19 : 20;
  int64_t line[4];
  int middle[4 * 8];
  bool in_range = true;
  for (int x = 0; x < 8; ++x) {
    Line(dequantised + x, 8, side, line);
    for (int y = 0; y < side; ++y) {
      const int value = Shifted(line[y], int64_t{1} << (first - 1), first);
      in_range &= std::abs(value) <= kMaxMiddle;
      middle[8 * y + x] = std::clamp(value, kLeast, kMost);
    }
  }
  const int64_t rounding = (int64_t{1} << (second - 1)) + (int64_t{128} << second);
  for (int y = 0; y < side; ++y) {
    Line(middle + 8 * y, 1, side, line);
    for (int x = 0; x < side; ++x)
      out[y * stride + x] = SampleOf(Shifted(line[x], rounding, second));
  }
  return in_range;
}

bool ReducedDctPlain(const Quantiser& quantiser, int side, int groups, int16_t* coefficients,
                     const uint8_t* /*last*/, uint8_t* out, ptrdiff_t stride) {
  bool in_range = true;
  for (int block = 0; block < groups * kGroupBlocks; ++block) {
    int16_t* const first =
        coefficients + block / kGroupBlocks * kGroupStride + block % kGroupBlocks * 8;
    int dequantised[64];
    for (int i = 0; i < 64; ++i) {
      const int at = i / 8 * kGroupRow + i % 8;
      const auto number = static_cast<size_t>(at);
      const bool used = side > 1 || i == 0;
      in_range &= !used || std::abs(first[at]) <= quantiser.limit[number];
      dequantised[i] = first[at] * quantiser.factor[number];
      first[at] = 0;
    }
    in_range &= ReducedBlockPlain(dequantised, side, out + block * side, stride);
  }
  return in_range;
}

}  // namespace stoker::jpeg
