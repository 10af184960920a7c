// Blur: down each column, then along each row, in integers.
//
// Weights have 14 to 16 bits behind the point, what lies between the two passes has kMiddleBits: of
// photographs' values, one in a thousand differs by 1 from what exact weights make of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// Fraction of a column's sum; with it 255 is just below 2^15.
inline constexpr int kMiddleBits = 7;

// Weights exp(−x² / 2σ²) at the middles of `taps` (odd) pixels around 0, as integers whose sum is
// 1 << the shift that is returned. The exponential is ours (draw.h): the same on every machine.
int GaussianWeights(int taps, double sigma, int16_t* weights);

// Bytes that Blurred needs beside the images.
size_t BlurScratchBytes(const Blur& blur, ImageSize size);

// `to`: of the same size, elsewhere. `scratch`: that many bytes, aligned as a GrowingBuffer's.
void Blurred(const Tile& from, const Blur& blur, uint8_t* scratch, const Tile& to);
void BlurredPlain(const Tile& from, const Blur& blur, const Tile& to);  // the plain twin

}  // namespace stoker
