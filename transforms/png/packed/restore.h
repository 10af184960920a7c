// Restores the PNG from a packed one (format.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result/result.h"

namespace stoker {

struct RestoredPng {
  std::vector<uint8_t> bytes;
  // Whether it has the size of the PNG that was packed, and is equal to it if zlib compresses as it
  // did then: another version need not. Otherwise it has the same pixels and the same chunks,
  // except that its pixels are compressed again.
  bool is_exact = true;
};

// `packed`: the output of PngPacker::Pack, followed by kBufferPadding readable bytes. DataLoss,
// with an offset, if it is damaged.
Result<RestoredPng> RestorePng(std::span<const uint8_t> packed);

// DataLoss if a packed PNG has other pixels or chunks than the PNG. Does not compare what restores
// the file.
Status ComparePngs(std::span<const uint8_t> png, std::span<const uint8_t> packed);

}  // namespace stoker
