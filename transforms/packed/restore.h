// Restores the JPEG from a packed one (format.h), to the byte.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result/result.h"

namespace stoker {

// `packed`: the output of JpegPacker, followed by kBufferPadding readable bytes. DataLoss, with an
// offset, if it is damaged.
Result<std::vector<uint8_t>> RestoreJpeg(std::span<const uint8_t> packed);

}  // namespace stoker
