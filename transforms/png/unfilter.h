// Undoes the filters of a PNG's rows (ISO/IEC 15948, clause 9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::png {

enum class Filter : uint8_t { kNone, kSub, kUp, kAverage, kPaeth };
inline constexpr uint8_t kFilters = 5;

// Bytes around those of a row that are accessed, see below.
inline constexpr size_t kRowPadding = 64;

// Undoes the filter of a part of a row. `pixel`: bytes from a sample to the same one of the next
// pixel, 1 to 8. `above` and `row`: the same part of the row above, and of the result; the `pixel`
// bytes before them belong to the pixel before, or are zero. kInflatedPadding bytes after `part`
// and kRowPadding after the others are accessed: `row` is written there.
//
// A pixel depends on the one before it, so a vector's first lanes have one pixel at a time, as in
// libpng, and the time is that of the chain from pixel to pixel. It is short: two instructions for
// Average, three for Paeth, less than half of libpng's and of stb_image's.
void Unfilter(Filter filter, size_t pixel, std::span<const uint8_t> part, const uint8_t* above,
              uint8_t* row);

// The reference: byte by byte, as the standard has it. Accesses no byte around the part.
void UnfilterPlain(Filter filter, size_t pixel, std::span<const uint8_t> part, const uint8_t* above,
                   uint8_t* row);

// Filters a row, or a part of it: the inverse, byte by byte. The `pixel` bytes before `row` and
// `above` belong to the pixel before, or are zero. Writes as many bytes to `filtered`.
void FilterPlain(Filter filter, size_t pixel, std::span<const uint8_t> row, const uint8_t* above,
                 uint8_t* filtered);

}  // namespace stoker::png
