#include <algorithm>
#include <cstdlib>

#include "transforms/jpeg/fast/pixels/inverse_dct.h"

namespace stoker::jpeg {

void InverseDctLinePlain(int* v, int step, int rounding, int shift) {
  const int64_t v0 = v[0], v1 = v[step], v2 = v[2 * step], v3 = v[3 * step], v4 = v[4 * step],
                v5 = v[5 * step], v6 = v[6 * step], v7 = v[7 * step];
  // Even part: a butterfly and a rotation by 6 × pi / 16.
  const int64_t turn = (v2 + v6) * 4433;
  const int64_t t2 = turn - v6 * 15137, t3 = turn + v2 * 6270;
  const int64_t t0 = (v0 + v4) * 8192, t1 = (v0 - v4) * 8192;
  const int64_t even[4] = {t0 + t3, t1 + t2, t1 - t2, t0 - t3};
  // Odd part: figure 8 of the paper.
  const int64_t z5 = (v7 + v3 + v5 + v1) * 9633;
  const int64_t z1 = -(v7 + v1) * 7373, z2 = -(v5 + v3) * 20995;
  const int64_t z3 = z5 - (v7 + v3) * 16069, z4 = z5 - (v5 + v1) * 3196;
  const int64_t odd[4] = {v1 * 12299 + z1 + z4, v3 * 25172 + z2 + z3, v5 * 16819 + z2 + z4,
                          v7 * 2446 + z1 + z3};
  for (int i = 0; i < 4; ++i) {
    // The sums of numbers in range fit into 32 bits; those of others wrap, as in vectors.
    v[i * step] = static_cast<int32_t>(even[i] + odd[i] + rounding) >> shift;
    v[(7 - i) * step] = static_cast<int32_t>(even[i] - odd[i] + rounding) >> shift;
  }
}

namespace {

// Transforms one block; the pointers are its first coefficient and its first sample.
bool TransformBlock(const Quantiser& q, int16_t* coefficients, uint8_t* out, ptrdiff_t stride) {
  int block[64];
  bool in_range = true;
  for (int i = 0; i < 64; ++i) {
    const int at = i / 8 * kGroupRow + i % 8;
    in_range &= std::abs(coefficients[at]) <= q.limit[static_cast<size_t>(at)];
    block[i] = coefficients[at] * q.factor[static_cast<size_t>(at)];
    coefficients[at] = 0;
  }
  if (!in_range) return false;
  for (int x = 0; x < 8; ++x) InverseDctLinePlain(block + x, 8, 1 << 10, 11);
  for (const int v : block) in_range &= std::abs(v) <= kMaxMiddle;
  if (!in_range) return false;
  for (int y = 0; y < 8; ++y) InverseDctLinePlain(block + 8 * y, 1, 1 << 17, 18);
  for (int i = 0; i < 64; ++i) {
    out[i / 8 * stride + i % 8] = static_cast<uint8_t>(std::clamp(block[i] + 128, 0, 255));
  }
  return true;
}

}  // namespace

bool InverseDctPlain(const Quantiser& quantiser, int groups, int16_t* coefficients,
                     const uint8_t* /*last*/, uint8_t* out, ptrdiff_t stride) {
  bool in_range = true;
  for (int block = 0; block < groups * kGroupBlocks; ++block) {
    int16_t* const first =
        coefficients + block / kGroupBlocks * kGroupStride + block % kGroupBlocks * 8;
    in_range &= TransformBlock(quantiser, first, out + block * 8, stride);
  }
  return in_range;
}

}  // namespace stoker::jpeg
