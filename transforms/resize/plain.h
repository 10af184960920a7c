// The plain twin of Resampler: a whole decoded image in, each step as its definition reads.
#pragma once

#include "core/image.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// `image`: all of task.image, in any layout. Writes what Resampler writes, to the same bytes; slow,
// and allocates as it likes.
void ResamplePlain(const ImageView& image, const Resampling& task, const PixelOutput& output);

}  // namespace stoker
