// The part of CropMaker that is for plain JPEGs with a crop index: which intervals between entry
// points a crop needs, and the Huffman tables.
#pragma once

#include <vector>

#include "core/device_crop.h"
#include "core/result.h"
#include "transforms/device/crop_bits.h"
#include "transforms/jpeg/fast/crop_geometry.h"
#include "transforms/jpeg/indexed_jpeg.h"

namespace stoker {

// Verifies the checksums of the bytes that the crop needs, and replaces `intervals` and `bits` by
// its intervals. Positions count from the first of the bits. DataLoss: the file has changed since
// it was indexed, or the index contradicts it.
Status PlanIntervals(const IndexedJpeg& file, const jpeg::CropGeometry& geometry,
                     std::vector<decode::CropInterval>& intervals, CropBits& bits);

// Replaces `codes` by the tables that the file's scan uses, each once, and says in `crop` which
// component uses which. Unimplemented: they are too many.
Status PlanCodes(const jpeg::FrameHeader& frame, decode::DeviceCrop& crop,
                 std::vector<decode::CropCodes>& codes);

}  // namespace stoker
