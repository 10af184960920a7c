// The pixel part of Mirror: swaps left and right, top and bottom.
#pragma once

#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// `to` has the same size and channels, and must not overlap.
void MirrorTo(const Tile& from, const Mirror& mirror, const Tile& to);
void MirrorPlain(const Tile& from, const Mirror& mirror, const Tile& to);  // the reference

}  // namespace stoker
