#include <algorithm>
#include <array>
#include <cstdlib>

#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/packed/scan/scan_coding.h"

namespace stoker::packed {
namespace {

using Block = std::array<int, 64>;

// The coefficients of a block of a group, in zig-zag order.
Block BlockOf(const int16_t* group, int block) {
  Block in_rows{}, coefficients{};
  for (int quad = 0; quad < kQuads; ++quad) {
    for (int word = 0; word < 4; ++word) {
      in_rows[static_cast<size_t>(CoefficientOf(quad, word))] =
          group[quad * kQuadWords + block * 4 + word];
    }
  }
  for (size_t k = 0; k < 64; ++k) coefficients[k] = in_rows[jpeg::kZigZag[k]];
  return coefficients;
}

void PutSymbol(uint64_t code, int value, BitSink& bits) {
  const auto count = static_cast<unsigned>(code & 0xFF);
  for (unsigned bit = count; bit-- > 0;) {
    bits.Put(((code >> 8 | NumberOf(value).bits) >> bit) & 1, 1);
  }
}

void CodeBlock(const Block& block, int predictor, const ScanCodes& codes, BitSink& bits) {
  const int difference = block[0] - predictor;
  PutSymbol(codes.dc[NumberOf(difference).size], difference, bits);
  int zeros = 0;
  for (size_t k = 1; k < block.size(); ++k) {
    const int value = block[k];
    if (value == 0) {
      ++zeros;
      continue;
    }
    for (; zeros > 15; zeros -= 16) PutSymbol(codes.ac[kZeros16], 0, bits);
    PutSymbol(codes.ac[static_cast<size_t>(zeros * 16 + NumberOf(value).size)], value, bits);
    zeros = 0;
  }
  if (zeros != 0) PutSymbol(codes.ac[kEndOfBlock], 0, bits);
}

}  // namespace

void FindNonZeroPlain(const int16_t* words, int groups, uint64_t* non_zero) {
  for (int i = 0; i < groups * kGroupBlocks; ++i) {
    const Block block =
        BlockOf(words + ptrdiff_t{i / kGroupBlocks} * kGroupWords, i % kGroupBlocks);
    non_zero[i] = 0;
    for (size_t k = 1; k < block.size(); ++k) {
      if (block[k] != 0) non_zero[i] |= uint64_t{1} << k;
    }
  }
}

void FindBitsPlain(const int16_t* words, int groups, int levels, uint64_t* masks) {
  for (int i = 0; i < groups * kGroupBlocks; ++i, masks += MasksOf(levels)) {
    const Block block =
        BlockOf(words + ptrdiff_t{i / kGroupBlocks} * kGroupWords, i % kGroupBlocks);
    std::fill_n(masks, MasksOf(levels), 0);
    for (size_t k = 1; k < block.size(); ++k) {
      const int size = std::abs(block[k]);
      for (int level = 0; level < levels; ++level) {
        masks[level] |= static_cast<uint64_t>(size >> level & 1) << k;
      }
      masks[levels] |= uint64_t{size >> levels != 0} << k;
      masks[levels + 1] |= uint64_t{block[k] < 0} << k;
    }
  }
}

void CodeMcusPlain(const BlockRows& rows, const McuWords& mcus, int from, int to,
                   std::span<const ScanCodes, 3> codes, std::array<int, 3>& predictor,
                   BitSink& bits) {
  for (int mcu = from; mcu < to; ++mcu) {
    for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
      const BlockRow& row = rows.row[r];
      const auto component = static_cast<size_t>(row.component);
      for (int i = mcu * row.columns; i < (mcu + 1) * row.columns; ++i) {
        const int16_t* const group = mcus.words[r] + ptrdiff_t{i / kGroupBlocks} * kGroupWords;
        const Block block = BlockOf(group, i % kGroupBlocks);
        CodeBlock(block, predictor[component], codes[component], bits);
        predictor[component] = block[0];
      }
    }
  }
}

}  // namespace stoker::packed
