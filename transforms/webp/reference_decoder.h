// The plain twin of WebpDecoder: libwebp decodes the whole file to RGB, alpha and all. What
// WebpDecoder is compared with, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/result.h"
#include "transforms/whole_image.h"

namespace stoker {

// DataLoss where libwebp fails. Without limits: for tests only.
Result<WholeImage> DecodeWholeWebp(std::span<const uint8_t> bytes);

}  // namespace stoker
