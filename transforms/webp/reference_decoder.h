// The reference for WebpDecoder: libwebp decodes the whole file to RGB, including alpha. Tests
// compare WebpDecoder with it, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/result/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// DataLoss if libwebp fails. No limits: for tests only.
Result<WholeImage> DecodeWholeWebp(std::span<const uint8_t> bytes);

}  // namespace stoker
