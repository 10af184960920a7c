// Reframe: a window of an image, which may reach outside it; and Mirror.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// `to`: of the window's size, elsewhere.
void Reframed(const Tile& from, const Reframe& reframe, const Tile& to);
void ReframedPlain(const Tile& from, const Reframe& reframe, const Tile& to);  // the plain twin

// `to`: of the same size, elsewhere.
void Mirrored(const Tile& from, const Mirror& mirror, const Tile& to);
void MirroredPlain(const Tile& from, const Mirror& mirror, const Tile& to);  // the plain twin

}  // namespace stoker
