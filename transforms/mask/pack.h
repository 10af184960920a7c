// Packs masks (format.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch/image.h"
#include "core/result/result.h"

namespace stoker {

// The values of a mask.
struct MaskValues {
  ImageSize size;                    // both sides at least 1, and at most kMaxSidePixels
  int bits = 8;                      // or 16: of the samples of the PNG
  int orientation = 1;               // the EXIF tag: 1 to 8
  const uint16_t* values = nullptr;  // rows without gaps
};

// Packs values. The result does not depend on the machine.
std::vector<uint8_t> PackValues(const MaskValues& mask);

// Packs the values of a PNG, decodes the result and compares the two. `png`: the whole file,
// followed by kBufferPadding readable bytes.
//
// Unimplemented, with the reason, if this file must be stored unchanged: it is not a PNG of one
// channel, it is damaged or beyond DecodeLimits, or it would become much larger. ResourceExhausted
// if the system has no memory.
Result<std::vector<uint8_t>> PackMask(std::span<const uint8_t> png);

// Compares the values of a PNG with those of a packed mask: DataLoss if they differ, and the errors
// of decoding either. Both are followed by kBufferPadding readable bytes.
Status CompareMasks(std::span<const uint8_t> png, std::span<const uint8_t> packed);

}  // namespace stoker
