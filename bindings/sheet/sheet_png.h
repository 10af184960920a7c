// Encodes contact sheets as PNG files, which say that stoker made them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// Returns the file of an image of RGB: 8 bits a channel, not interlaced, without an alpha channel.
// ResourceExhausted: no memory. Precondition: `image` is kInterleaved, with both sides positive.
Result<std::vector<uint8_t>> EncodeSheet(const WholeImage& image);

// Whether the first bytes of a file are those of an EncodeSheet; kSheetBeginBytes suffice.
inline constexpr size_t kSheetBeginBytes = 80;
bool BeginsAsSheet(std::span<const uint8_t> bytes);

}  // namespace stoker
