// Generates Huffman tables in file format: 16 counts and the symbols.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/numbers/random.h"

namespace stoker::testing {

// Returns a random prefix code for `symbols`, with lengths from very even to very uneven.
inline std::vector<uint8_t> RandomHuffman(std::vector<uint8_t> symbols, RandomStream& random) {
  for (size_t i = symbols.size(); i > 1; --i) std::swap(symbols[i - 1], symbols[random.Below(i)]);
  std::vector<uint8_t> spec(16, 0);
  // At each length some of the free codes are used; enough are kept for the other symbols, and none
  // is all ones.
  size_t left = symbols.size();
  uint64_t free_codes = 1;
  const uint64_t share = 1 + random.Below(8);
  for (size_t length = 1; length <= 16 && left > 0; ++length) {
    free_codes *= 2;
    const uint64_t later = uint64_t{1} << (16 - length);  // longer codes that one of these can
                                                          // become
    uint64_t most = std::min<uint64_t>({free_codes - 1, left, 255});
    while (most > 0 && (free_codes - most) * later <= left - most) --most;
    const uint64_t count = length == 16 ? left : random.Below(most + 1) / share;
    spec[length - 1] = static_cast<uint8_t>(count);
    free_codes -= count;
    left -= count;
  }
  spec.insert(spec.end(), symbols.begin(), symbols.end());
  return spec;
}

inline std::vector<uint8_t> DcSymbols() {
  std::vector<uint8_t> symbols;
  for (uint8_t size = 0; size <= 11; ++size) symbols.push_back(size);
  return symbols;
}

inline std::vector<uint8_t> AcSymbols() {
  std::vector<uint8_t> symbols = {0x00, 0xF0};
  for (unsigned run = 0; run < 16; ++run) {
    for (unsigned size = 1; size <= 10; ++size) {
      symbols.push_back(static_cast<uint8_t>(run << 4 | size));
    }
  }
  return symbols;
}

// Returns a random subset of `symbols`, at least one.
inline std::vector<uint8_t> SomeOf(const std::vector<uint8_t>& symbols, RandomStream& random) {
  std::vector<uint8_t> some;
  const uint64_t share = 1 + random.Below(6);
  for (const uint8_t s : symbols) {
    if (random.Below(share) == 0) some.push_back(s);
  }
  if (some.empty()) some.push_back(symbols[random.Below(symbols.size())]);
  return some;
}

}  // namespace stoker::testing
