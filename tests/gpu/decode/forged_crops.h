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

}  // namespace stoker::testing
