// The reference for Resampler: takes a whole decoded image and executes each step as defined.
#pragma once

#include "core/batch/image.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// `image`: all of task.image, in any layout. Writes the same bytes as Resampler; slow; allocates
// freely.
void ResamplePlain(const ImageView& image, const Resampling& task, const PixelOutput& output);

}  // namespace stoker
