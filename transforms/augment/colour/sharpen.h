// The pixel part of AdjustSharpness: blends an image with its smoothed copy.
#pragma once

#include "transforms/augment/tile.h"

namespace stoker {

// Computes value + (1 − factor) (smooth − value), rounded once, where smooth is the mean of a pixel
// (counted 5 times) and its eight neighbors, rounded. The border, and an image without inner
// pixels, are not changed. `to` has the same size, and must not overlap.
void Sharpen(const Tile& from, double factor, const Tile& to);
void SharpenPlain(const Tile& from, double factor, const Tile& to);  // the reference

}  // namespace stoker
