// Puts the crop of an image into its batch's memory, for a device that decodes it.
#pragma once

#include <cstdint>
#include <optional>

#include "core/crop_region.h"
#include "transforms/decode/decoding.h"
#include "transforms/device/crop_maker.h"
#include "transforms/packed/packed_file.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// Makes the crop that `task` resamples, and sets `crop_at` to its place in `region`. Otherwise
// returns why a worker must decode the image, and changes nothing. `maker`: the calling thread's.
std::optional<OnWorker> PutCrop(const packed::PackedFile& file, const Resampling& task,
                                CropMaker& maker, CropRegion& region, uint64_t& crop_at);

}  // namespace stoker
