// The inverse DCT of transforms/jpeg/fast/pixels/inverse_dct.h, in numbers of 32 bits that wrap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/crops/clamped.h"

namespace stoker::decode {
namespace {

constexpr int32_t Wrapped16(int32_t value) { return static_cast<int16_t>(value); }

// One line of the inverse DCT (jpeg::InverseDctLinePlain).
constexpr void InverseDctLine(std::array<int32_t, 8>& line, uint32_t rounding, int shift) {
  std::array<uint32_t, 8> v{};
  for (size_t i = 0; i < 8; ++i) v[i] = static_cast<uint32_t>(line[i]);
  const uint32_t turn = (v[2] + v[6]) * 4433;
  const uint32_t t2 = turn - v[6] * 15137, t3 = turn + v[2] * 6270;
  const uint32_t t0 = (v[0] + v[4]) * 8192 + rounding, t1 = (v[0] - v[4]) * 8192 + rounding;
  const std::array<uint32_t, 4> even = {t0 + t3, t1 + t2, t1 - t2, t0 - t3};
  const uint32_t z5 = (v[7] + v[3] + v[5] + v[1]) * 9633;
  const uint32_t z1 = (v[7] + v[1]) * 7373, z2 = (v[5] + v[3]) * 20995;
  const uint32_t z3 = z5 - (v[7] + v[3]) * 16069, z4 = z5 - (v[5] + v[1]) * 3196;
  const std::array<uint32_t, 4> odd = {v[1] * 12299 - z1 + z4, v[3] * 25172 - z2 + z3,
                                       v[5] * 16819 - z2 + z4, v[7] * 2446 - z1 + z3};
  for (size_t i = 0; i < 4; ++i) {
    line[i] = static_cast<int32_t>(even[i] + odd[i]) >> shift;
    line[7 - i] = static_cast<int32_t>(even[i] - odd[i]) >> shift;
  }
}

// The first pass, over a column of dequantized coefficients, which are numbers of 16 bits; so are
// the results.
constexpr void InverseDctColumn(std::array<int32_t, 8>& line) {
  InverseDctLine(line, 1 << 10, 11);
  for (int32_t& value : line) value = Clamped(value, -32768, 32767);
}

// Four samples.
constexpr uint32_t SamplesOf(const int32_t* line) {
  uint32_t samples = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    samples |= static_cast<uint32_t>(Clamped(line[i], 0, 255)) << (8 * i);
  }
  return samples;
}

// Eight samples of a row.
struct alignas(8) RowOfBlock {
  uint32_t left, right;
};

// The second pass, over a row of the first one's results.
constexpr RowOfBlock InverseDctRow(std::array<int32_t, 8>& line) {
  InverseDctLine(line, (1 << 17) + (128 << 18), 18);
  return {SamplesOf(line.data()), SamplesOf(line.data() + 4)};
}

}  // namespace
}  // namespace stoker::decode
