// Decodes the symbols of DEFLATE's blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/png/codes.h"

namespace stoker::png {

// The state of a decompression.
struct Stream {
  const uint8_t* in = nullptr;
  const uint8_t* in_end = nullptr;  // of the chunk
  // The bits read before `in`, the next one lowest. The first `left` count; those after them are
  // zero, or equal to the bits of the input that will be there.
  uint64_t bits = 0;
  unsigned left = 0;
  uint8_t* out = nullptr;
};

// Bytes that DecodeSymbols reads beyond `in`, and those that it writes beyond `target`.
inline constexpr size_t kSymbolInput = 16;
inline constexpr size_t kSymbolOutput = 288;

enum class SymbolsEnd : uint8_t { kInputOrTarget, kEndOfBlock, kDamaged };

// Decodes until `out` has reached `target`, fewer than kSymbolInput bytes of the chunk are left,
// the block ends, or it turns out to be damaged. `begin`: matches reach back to it at most. As in
// libdeflate, an entry is looked up before the literals that precede it are written, and bits are
// refilled without branches.
SymbolsEnd DecodeSymbols(const Codes& codes, const uint8_t* begin, const uint8_t* target,
                         Stream& stream);

// Copies a match byte by byte: the end of `out` is that of the bytes it may be copied from.
inline uint8_t* CopyMatchPlain(uint8_t* out, size_t distance, size_t length) {
  for (size_t i = 0; i < length; ++i, ++out) *out = *(out - distance);
  return out;
}

}  // namespace stoker::png
