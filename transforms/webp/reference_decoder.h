// The reference for WebpDecoder: libwebp decodes the whole file to RGB, including alpha. Tests
// compare WebpDecoder with it, byte for byte.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// DataLoss if libwebp fails. No limits: for tests only.
Result<WholeImage> DecodeWholeWebp(std::span<const uint8_t> bytes);
// The same, with alpha: the pixels, four bytes each.
Result<std::vector<uint8_t>> DecodeWholeWebpRgba(std::span<const uint8_t> bytes);

}  // namespace stoker
