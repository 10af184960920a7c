// The part of CropMaker that is for packed JPEGs: which runs a crop needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch/device_crop.h"
#include "core/result/result.h"
#include "transforms/device/crop_bits.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/packed/packed_file.h"

namespace stoker {

// The first MCU of the crop's samples, at which a group begins in all components.
int FirstMcuOfRuns(const jpeg::CropGeometry& geometry);

// Return the numbers of the crop's runs, and of its pieces of the file.
struct RunCounts {
  uint32_t runs = 0, pieces = 0;
};
RunCounts CountRuns(const packed::PackedFile& file, const jpeg::CropGeometry& geometry);

// Verifies the checksums of the rows of MCUs that the crop needs, sets `runs`, whose size is
// CountRuns', and adds its bits. DataLoss.
Status PlanRuns(const packed::PackedFile& file, const jpeg::CropGeometry& geometry,
                const std::array<decode::CropPlane, 3>& planes, decode::CropRun* runs,
                CropBits& bits);

}  // namespace stoker
