// Crops of files that anybody may have forged.
#pragma once

#include <cstdint>
#include <span>

#include "tests/testing/random.h"

namespace stoker::testing {

// Decodes a random crop of a packed JPEG by the templates of the kernels, and ends the program
// unless the samples are those that the CPU's decoder makes of the same bits. `file`: followed by
// kBufferPadding bytes. The image's size must have been checked. False if the host refuses the
// file.
bool DecodeForgedCrop(std::span<const uint8_t> file, Random& random);

// The same of a plain JPEG and its crop index, in two ways: as they are, and with other bits,
// tables, positions and predictors in the crop than its maker has written. The samples are those of
// the reference (plain_interval.h).
bool DecodeForgedCrop(std::span<const uint8_t> file, std::span<const uint8_t> crop_index,
                      Random& random);

// Ends the program unless a random crop has the pixels of the CPU. `crop_index`: as `stoker index`
// has made it of a file that anybody may have made.
void RequirePixelsOfTheCpu(std::span<const uint8_t> file, std::span<const uint8_t> crop_index,
                           Random& random);

}  // namespace stoker::testing
