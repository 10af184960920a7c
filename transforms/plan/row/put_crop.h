// Puts the crop of an image into its batch's memory, for a device that decodes it.
#pragma once

#include <cstdint>

#include "core/batch/crop_region.h"
#include "core/result/result.h"
#include "transforms/decode/decoding.h"
#include "transforms/device/crop_maker.h"

namespace stoker {

// Why a worker must decode an image whose crop cannot be planned. `error`: CropMaker::Plan's.
OnWorker ReasonOf(const Error& error);

// Writes the crop that `maker` has planned, and sets `crop_at` to its place in `region`. If there
// is no room for it, changes nothing and returns false.
bool PutCrop(const CropMaker& maker, CropRegion& region, uint64_t& crop_at);

}  // namespace stoker
