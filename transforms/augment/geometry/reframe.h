// Reframe: crops to a window, which may extend outside the image.
#pragma once

#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// `to` has the window's size and as many channels, and must not overlap.
void ReframeTo(const Tile& from, const Reframe& reframe, const Tile& to);
void ReframePlain(const Tile& from, const Reframe& reframe, const Tile& to);  // the reference

}  // namespace stoker
