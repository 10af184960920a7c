#include "transforms/webp/library_bytes.h"

#include <array>
#include <cstddef>

#include "core/numbers/divide_up.h"

namespace stoker::webp {
namespace {

uint64_t Quotient(int a, int b) { return static_cast<uint64_t>(DivideUp(a, b)); }

}  // namespace

// libwebp 1.2.4, frame_dec.c, AllocateMemory: for each column of macroblocks 4 bytes of modes, 32
// of samples above, 2 and 4 of information about a macroblock, 800 of its coefficients, and 32 ×
// (16 + 8) × 3 / 2 of rows, of which 8 wait for the loop filter; io_dec.c keeps two rows of
// samples, 32 bytes; the decoder itself takes less than 8 KiB.
uint64_t LossyBytes(ImageSize size) { return Quotient(size.width, 16) * 2032 + (12 << 10); }

// vp8l_dec.c, AllocateInternalBuffers32b: four bytes for each pixel, and for 17 rows. The images
// inside the header, of predictors, of colors and of groups of codes, have at most one pixel per 4
// × 4. The rest: two caches of 2048 colors, lengths of 2328 codes, one group for those images.
uint64_t LosslessBytes(ImageSize size) {
  const uint64_t pixels = static_cast<uint64_t>(size.width) * static_cast<uint64_t>(size.height);
  const uint64_t blocks = Quotient(size.width, 4) * Quotient(size.height, 4);
  return 4 * (pixels + uint64_t{17} * static_cast<uint64_t>(size.width)) + 3 * 4 * blocks +
         (64 << 10);
}

// ReadHuffmanCodes: for each group 568 bytes, and tables of 4 bytes per entry: 2300 entries, and
// what green needs with that many cached colors (kTableSize); room for as much again if a table
// fills it to the last entry (huffman_utils.c, VP8LBuildHuffmanTable). 4 bytes for each group's
// number.
uint64_t LosslessBytes(ImageSize size, const LosslessHeader& header) {
  constexpr std::array<uint64_t, 12> kGreen = {654, 656, 658, 662,  670,  686,
                                               718, 782, 912, 1168, 1680, 2704};
  const uint64_t entries = 2300 + kGreen[static_cast<size_t>(header.color_cache_bits)];
  return LosslessBytes(size) + static_cast<uint64_t>(header.groups) * (568 + 2 * 4 * entries) +
         4 * static_cast<uint64_t>(header.group_numbers);
}

}  // namespace stoker::webp
