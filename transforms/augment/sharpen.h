// AdjustSharpness.
#pragma once

#include "transforms/augment/tile.h"

namespace stoker {

// value + (1 − factor) (smooth − value), in binary32. smooth: the mean of a pixel (5 times) and its
// eight neighbours, rounded. The border, and an image without inner pixels, stay as they are.
// `to`: of the same size, elsewhere.
void Sharpen(const Tile& from, float factor, const Tile& to);
void SharpenPlain(const Tile& from, float factor, const Tile& to);  // the plain twin

}  // namespace stoker
