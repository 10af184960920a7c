// Blur: filters each column, then each row, in integers.
//
// Weights have 14 to 16 fractional bits, intermediate values kMiddleBits: in photographs, one value
// in a thousand differs by 1 from the result with exact weights.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// Fractional bits of a column's sum; 255 is then just below 2^15.
inline constexpr int kMiddleBits = 7;

// Returns exp(−x² / 2σ²) at the center of one of `taps` (odd) pixels around 0; 1 at 0, even if σ is
// 0. Uses stoker's exponential (draw.h), which is the same on every machine.
double GaussianWeight(int tap, int taps, double sigma);

// Computes these weights as integers whose sum is 1 << the returned shift.
int GaussianWeights(int taps, double sigma, int16_t* weights);

// Returns the bytes of scratch memory that BlurTo needs.
size_t BlurScratchBytes(const Blur& blur, ImageSize size);

// `to` has the same size, and must not overlap. `scratch`: BlurScratchBytes bytes, aligned like a
// GrowingBuffer's.
void BlurTo(const Tile& from, const Blur& blur, uint8_t* scratch, const Tile& to);
void BlurPlain(const Tile& from, const Blur& blur, const Tile& to);  // the reference

}  // namespace stoker
