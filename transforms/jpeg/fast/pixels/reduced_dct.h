// Phase 5 for reduced images: transforms the coefficients of a block to 4 × 4, 2 × 2 samples or
// one.
//
// Computes libjpeg's reduced inverse DCTs (jidctred.c) bit-exactly. Up to rounding, each sample is
// the mean of those of the whole block that it represents.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/jpeg/fast/pixels/inverse_dct.h"

namespace stoker::jpeg {

// Like InverseDct, but writes `side` (4, 2 or 1) rows of groups × 4 × side samples.
bool ReducedDct(const Quantiser& quantiser, int side, int groups, int16_t* coefficients,
                const uint8_t* last, uint8_t* out, ptrdiff_t stride);

// The reference.
bool ReducedDctPlain(const Quantiser& quantiser, int side, int groups, int16_t* coefficients,
                     const uint8_t* last, uint8_t* out, ptrdiff_t stride);

// Its transform of one block: `dequantised` are 64 coefficients of 16 bits, row by row. Returns
// false if a number between the two passes was out of range (kMaxMiddle); samples are then those
// that vectors give, whose sums wrap.
bool ReducedBlockPlain(const int* dequantised, int side, uint8_t* out, ptrdiff_t stride);

// All samples of a block of side 4 or 2 that has only a DC coefficient.
uint8_t FlatSample(int dequantised_dc);

// The only sample of a block of side 1. Unlike the others it is not clamped but wraps beyond 10
// bits: libjpeg-turbo computes it without SIMD, by a table that is so large.
uint8_t MeanOfBlock(int dequantised_dc);

}  // namespace stoker::jpeg
