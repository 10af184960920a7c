// Reframe: a window of an image, which may reach outside it.
#pragma once

#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// `to`: of the window's size, elsewhere.
void Reframed(const Tile& from, const Reframe& reframe, const Tile& to);
void ReframedPlain(const Tile& from, const Reframe& reframe, const Tile& to);  // the plain twin

}  // namespace stoker
