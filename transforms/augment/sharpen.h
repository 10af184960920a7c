// AdjustSharpness.
#pragma once

#include "transforms/augment/tile.h"

namespace stoker {

// value + (1 − factor) (smooth − value), rounded once. smooth: the mean of a pixel (5 times) and
// its eight neighbours, rounded. The border, and an image without inner pixels, stay as they are.
// `to`: of the same size, elsewhere.
void Sharpen(const Tile& from, double factor, const Tile& to);
void SharpenPlain(const Tile& from, double factor, const Tile& to);  // the plain twin

}  // namespace stoker
