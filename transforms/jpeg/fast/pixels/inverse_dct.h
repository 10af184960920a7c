// Phase 5: transforms coefficients to samples.
//
// Computes libjpeg's accurate integer inverse DCT ("islow"; Loeffler, Ligtenberg, Moschytz,
// "Practical fast 1-D DCT algorithms with 11 multiplications", 1989, with 13-bit constants)
// bit-exactly, on four blocks at once: a row of a group is a row of four blocks, and the output
// rows are adjacent in the plane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transforms/jpeg/fast/entropy/entropy.h"

namespace stoker::jpeg {

// Dequantized coefficients of 8-bit samples lie within ±1024, apart from rounding, and the results
// of the first pass within ±8192. libjpeg-turbo's SIMD code adds two such numbers in 16 bits, this
// code in 32: with hostile coefficients they would differ. So both ranges are checked.
inline constexpr int kMaxDequantised = 4095;
inline constexpr int kMaxMiddle = 16383;

// A quantization table for groups, repeated for the four blocks.
struct Quantiser {
  alignas(64) std::array<int16_t, 8 * kGroupRow> factor;
  alignas(64) std::array<uint16_t, 8 * kGroupRow> limit;  // largest |coefficient| in range
};

void SetQuantiser(const std::array<uint16_t, 64>& table, Quantiser& quantiser);

// Transforms a row of blocks: `groups` groups of coefficients, 64-byte aligned, which are set to
// zero. last[4 × group + block] is the zig-zag index of the block's last coefficient. Writes 8 rows
// of groups × 32 samples. Returns false if a number was out of range; samples are then unspecified.
bool InverseDct(const Quantiser& quantiser, int groups, int16_t* coefficients, const uint8_t* last,
                uint8_t* out, ptrdiff_t stride);

// The reference.
bool InverseDctPlain(const Quantiser& quantiser, int groups, int16_t* coefficients,
                     const uint8_t* last, uint8_t* out, ptrdiff_t stride);

// Its transform in one dimension, × sqrt(8), in place: of eight values of 16 bits, `step` apart.
// Results are rounded by adding `rounding`, and divided by 1 << shift.
void InverseDctLinePlain(int* v, int step, int rounding, int shift);

}  // namespace stoker::jpeg
