// The format of a packed PNG: its pixels as the residuals of a predictor, in as many bits as the
// largest of each 16 needs, and all that is needed to restore the file. Numbers are little-endian.
//
//   8   F5 "stkpng" 01: magic, and the format's version
//   4   the size of the PNG
//   4   the size of its chunks
//   4   the size of the recipe
//   4   the CRC-32C of what precedes it here, and of the chunks and the directory
//       chunks: the PNG, with one empty IDAT chunk instead of its own
//       directory, for each band, from top to bottom:
//   4     where the band ends, from the end of the directory
//   4     the CRC-32C of the band
//       bands
//       recipe (recipe.h): how the pixels were filtered and compressed; empty if the PNG need not
//       be restored
//
// A band has kBandRows rows, the last one what is left, and does not refer to others:
//
//   2 × tiles  the sizes of its tiles, from left to right
//              tiles: 64 columns, the last one of what is left
//
// A byte of a pixel has a plane of its own: one of each sample, or of 16 bits two, the upper one
// first. The bytes of red and blue are differences to those of green (modulo 256, like all here).
//
//   tile:
//   1 × planes  the value of all pixels above the tile
//       runs: of each row those of each plane
//
//   run: 64 values
//   2   four blocks of 16, four bits each: the index in kWidths of the width of its residuals, plus
//       8 if they are of the gradient
//   2 × width  for each block: its residuals in two's complement, end to end
//
// A residual is what a value differs from the one above by, or, of the gradient, the difference of
// that to the same of the value to the left, at the tile's left edge to 0. (So the gradient
// predicts left + above - above left.) Neither needs a chain of operations from value to value:
// sums of the second kind are prefix sums. Widths of few values, as those of SIMD-BP128 and
// FastPFOR (Lemire & Boytsov, 2015), make up for the codes of variable length that this form has
// not.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "transforms/png/chunks.h"

namespace stoker::packed_png {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::array<uint8_t, 7> kMagic = {0xF5, 's', 't', 'k', 'p', 'n', 'g'};
inline constexpr uint8_t kVersion = 1;

struct FixedPart {
  std::array<uint8_t, 7> magic = kMagic;
  uint8_t version = kVersion;
  uint32_t png_bytes = 0, chunk_bytes = 0, recipe_bytes = 0;
  uint32_t checksum = 0;
};
static_assert(sizeof(FixedPart) == 24);

struct DirectoryEntry {
  uint32_t end, checksum;
};
static_assert(sizeof(DirectoryEntry) == 8);

inline constexpr int kBandRows = 32;
inline constexpr int kTileColumns = 64;
inline constexpr size_t kMaxPlanes = 8;

inline constexpr size_t kRunBlocks = 4, kBlockValues = kTileColumns / kRunBlocks;
inline constexpr std::array<uint8_t, 8> kWidths = {0, 1, 2, 3, 4, 5, 6, 8};  // bits
inline constexpr unsigned kWidthMask = 7, kGradient = 8;  // of a block's four bits
inline constexpr size_t kMostRunBytes = 2 + kTileColumns;

// Sides may be any of a header's, up to the largest int.
constexpr int BandsOf(ImageSize size) { return (size.height - 1) / kBandRows + 1; }
constexpr int TilesOf(ImageSize size) { return (size.width - 1) / kTileColumns + 1; }

// Whether images of this kind are packed: those with 8 or 16 bits, and not interlaced.
constexpr bool HasPlanes(const png::Header& header) {
  return header.bit_depth >= 8 && !header.interlaced;
}

// The planes of an image.
struct Planes {
  size_t count = 1;
  size_t of_sample = 1;      // 2 with 16 bits
  bool has_colours = false;  // red, green and blue: the first three samples

  explicit Planes(const png::Header& header)
      : count(static_cast<size_t>(header.channels() * header.bit_depth / 8)),
        of_sample(static_cast<size_t>(header.bit_depth / 8)),
        has_colours(header.channels() >= 3) {}

  // Whether a plane is of differences, to plane Green(plane).
  bool IsDifference(size_t plane) const {
    const size_t sample = plane / of_sample;
    return has_colours && (sample == 0 || sample == 2);
  }
  size_t Green(size_t plane) const { return of_sample + plane % of_sample; }
};

}  // namespace stoker::packed_png
