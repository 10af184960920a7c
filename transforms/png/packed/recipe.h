// The recipe of a packed PNG: how the PNG's encoder filtered, compressed and divided its pixels, so
// that the file can be restored. Numbers are little-endian.
//
//   1   1 if the file is restored to the byte; 0 if its compression could not be reproduced
//   4   zlib's parameters: level, strategy, memory level, bits of the window
//   2   the first two bytes of the compressed data, which some encoders change
//   1 × rows  the filter of each row
//       runs of chunks IDAT:
//   4     the size of each
//   4     how many there are
//
// An encoder's parameters are found by trying them, as precomp and preflate do. The first bytes of
// the compressed data already tell most of them apart, so a wrong guess costs little. The same
// parameters give other bytes in another version of zlib, which decompress to the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/result/result.h"
#include "transforms/png/chunks.h"

namespace stoker::packed_png {

struct Compression {
  uint8_t is_exact = 0;
  uint8_t level = 6, strategy = 1, memory_level = 8, window_bits = 15;
  uint8_t first[2] = {0x78, 0x9C};
};
static_assert(sizeof(Compression) == 7);

struct ChunkRun {
  uint32_t bytes = 0, count = 0;
};

struct Recipe {
  Compression compression;
  std::vector<uint8_t> filters;
  std::vector<ChunkRun> chunks;
};

void Append(const Recipe& recipe, std::vector<uint8_t>& bytes);
// `rows`: how many the image has. DataLoss, without an offset.
Result<Recipe> ReadRecipe(std::span<const uint8_t> bytes, int rows);

// Finds a PNG's recipe; its data are decompressed for each guess. Errors of Inflater.
Result<Recipe> FindRecipe(std::span<const uint8_t> png, const png::Header& header,
                          const png::Layout& layout);

// Returns the compressed data of rows, which `next` returns one after another, with their filter
// bytes; it is empty after the last. ResourceExhausted, and the errors of `next`.
using FilteredRows = std::function<Result<std::span<const uint8_t>>()>;
Result<std::vector<uint8_t>> Compress(const Compression& by, const FilteredRows& next);

}  // namespace stoker::packed_png
