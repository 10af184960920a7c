// The plain twin of WebpDecoder: libwebp decodes the whole file to RGB, alpha and all. What
// WebpDecoder is compared with, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// DataLoss where libwebp fails. Without limits: for tests only.
Result<WholeImage> DecodeWholeWebp(std::span<const uint8_t> bytes);

}  // namespace stoker
