// Converts geometry in the image as viewed to a resampling of the image as stored.
#pragma once

#include "transforms/decode/orientation.h"
#include "transforms/decode/reduction.h"
#include "transforms/plan/plan.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// `stored`: size of the stored image. Resampling uses the stored orientation; the small result is
// turned. With a `reduction` the image to resample is the reduced one.
Resampling ResamplingOf(const Geometry& geometry, ImageSize stored, Orientation orientation,
                        Reduction reduction = 1);

// Returns the largest reduction, at most `most`, after which the geometry's box is not smaller than
// what it is resampled to. 1 if resampling does not antialias, because reducing does.
Reduction ReductionOf(const Geometry& geometry, Reduction most);

}  // namespace stoker
