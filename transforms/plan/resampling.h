// From geometry in the image as it is viewed to the resampling of the image as it is stored.
#pragma once

#include "transforms/decode/orientation.h"
#include "transforms/plan/plan.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// `stored`: size of the stored image. The resampling is done in the orientation in which the image
// is stored, and the small result is turned.
Resampling ResamplingOf(const Geometry& geometry, ImageSize stored, Orientation orientation);

}  // namespace stoker
