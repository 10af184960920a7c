// Puts the crop of an image into its batch's memory, for a device that decodes it.
#pragma once

#include <cstdint>
#include <optional>

#include "core/crop_region.h"
#include "core/result.h"
#include "transforms/decode/decoding.h"
#include "transforms/device/crop_maker.h"

namespace stoker {

// Writes the crop that `maker` has planned, and sets `crop_at` to its place in `region`. Otherwise
// returns why a worker must decode the image, and changes nothing. `planned`: what Plan returned.
std::optional<OnWorker> PutCrop(const Status& planned, const CropMaker& maker, CropRegion& region,
                                uint64_t& crop_at);

}  // namespace stoker
