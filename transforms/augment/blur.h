// Blur: down each column, then along each row, in binary32, summed from the first tap to the last;
// rounded once, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// exp(−x² / 2σ²) at the middles of `taps` (odd) pixels around 0, normalised: their sum is 1 but for
// rounding. The exponential is ours (draw.h): the same weights on every machine.
void GaussianWeights(int taps, double sigma, float* weights);

// Bytes that Blurred needs beside the images.
size_t BlurScratchBytes(const Blur& blur, ImageSize size);

// `to`: of the same size, elsewhere. `scratch`: that many bytes, aligned as a GrowingBuffer's.
void Blurred(const Tile& from, const Blur& blur, uint8_t* scratch, const Tile& to);
void BlurredPlain(const Tile& from, const Blur& blur, const Tile& to);  // the plain twin

}  // namespace stoker
