// The reference for PackedMaskDecoder: decodes a whole mask bit by bit, as format.h describes it.
#pragma once

#include <cstdint>
#include <span>

#include "core/result/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// Returns kGray, or kGray16 if `wide`; DataLoss for damaged ones, and for more than `max_pixels`.
// For tests only. `bytes` need not have readable bytes after them.
Result<WholeImage> DecodeWholePackedMask(std::span<const uint8_t> bytes, bool wide,
                                         int64_t max_pixels);

}  // namespace stoker
