// Reduces what was drawn for a sample to what its masks take part in.
#pragma once

#include <cstdint>

#include "transforms/plan/drawn.h"
#include "transforms/spec/fill.h"

namespace stoker {

// Keeps only what moves pixels, without blending them: the geometry, with kNearest, and of the
// steps Affine (kNearest), Reframe and Mirror. All constant padding becomes `fill`, channel by
// channel. Steps are merged into the geometry as far as possible, so that often none is left.
void KeepMotion(DrawnSample& drawn, const Fill& fill);

}  // namespace stoker
