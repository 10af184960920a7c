// The part of CropMaker that is for plain JPEGs with a crop index: which intervals between entry
// points a crop needs, and the Huffman tables.
#pragma once

#include <array>
#include <cstdint>

#include "core/batch/device_crop.h"
#include "core/result/result.h"
#include "transforms/device/crop_bits.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/jpeg/indexed_jpeg.h"

namespace stoker {

// Returns the number of the crop's intervals. (It has a piece of the file's bytes for each row of
// MCUs.)
uint32_t CountIntervals(const IndexedJpeg& file, const jpeg::CropGeometry& geometry);

// Verifies the checksums of the bytes that the crop needs, sets `intervals`, whose size is
// CountIntervals', and adds its bits. DataLoss: the file has changed since it was indexed, or the
// index contradicts it.
Status PlanIntervals(const IndexedJpeg& file, const jpeg::CropGeometry& geometry,
                     decode::CropInterval* intervals, CropBits& bits);

// Sets the first of `codes` to the tables that the file's scan uses, each once, and sets their
// number, and the table of each component, in `crop`. Unimplemented if there are too many.
Status PlanCodes(const jpeg::FrameHeader& frame, decode::DeviceCrop& crop,
                 std::array<decode::CropCodes, decode::kMostCodes>& codes);

}  // namespace stoker
