// Converts geometry in the image as viewed to a resampling of the image as stored.
#pragma once

#include "transforms/decode/orientation.h"
#include "transforms/plan/plan.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// `stored`: size of the stored image. Resampling uses the stored orientation; the small result is
// turned.
Resampling ResamplingOf(const Geometry& geometry, ImageSize stored, Orientation orientation);

}  // namespace stoker
