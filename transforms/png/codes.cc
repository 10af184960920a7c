#include "transforms/png/codes.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace stoker::png {
namespace {

// The entries of the symbols, without the bits of their codes.
constexpr std::array<uint32_t, kLiteralSymbols> MakeLiterals() {
  constexpr uint32_t kEnd = 256, kFirstLength = 257, kLongest = 285;
  std::array<uint32_t, kLiteralSymbols> entries{};
  for (uint32_t s = 0; s < entries.size(); ++s) {
    if (s < kEnd) {
      entries[s] = s << 16 | kLiteral;
    } else if (s == kEnd || s > kLongest) {
      entries[s] = kSpecial | (s == kEnd ? kEndOfBlock : 0);
    } else if (s == kLongest) {
      entries[s] = 258 << 16;
    } else {
      const uint32_t n = s - kFirstLength, extra = n < 8 ? 0 : n / 4 - 1;
      const uint32_t base = n < 8 ? n + 3 : ((4 + n % 4) << extra) + 3;
      entries[s] = base << 16 | extra;
    }
  }
  return entries;
}

constexpr std::array<uint32_t, kDistanceSymbols> MakeDistances() {
  constexpr uint32_t kFarthest = 29;
  std::array<uint32_t, kDistanceSymbols> entries{};
  for (uint32_t s = 0; s < entries.size(); ++s) {
    const uint32_t extra = s < 4 ? 0 : s / 2 - 1;
    const uint32_t base = s < 4 ? s + 1 : ((2 + s % 2) << extra) + 1;
    entries[s] = s > kFarthest ? kSpecial : base << 16 | extra;
  }
  return entries;
}

constexpr std::array<uint32_t, kLengthSymbols> MakeLengths() {
  std::array<uint32_t, kLengthSymbols> entries{};
  for (uint32_t s = 0; s < entries.size(); ++s) entries[s] = s << 16;
  return entries;
}

constexpr auto kLiterals = MakeLiterals();
constexpr auto kDistances = MakeDistances();
constexpr auto kLengths = MakeLengths();

constexpr uint32_t WithCode(uint32_t entry, unsigned bits) { return entry + bits * 0x101; }

// Returns the code after `code`, of the same length. A code's first bit is its lowest.
uint32_t Next(uint32_t code, unsigned bits) {
  const uint32_t highest_zero = std::bit_floor(~code & ((uint32_t{1} << bits) - 1));
  return highest_zero == 0 ? code : (code & (highest_zero - 1)) | highest_zero;
}

// The symbols that have codes, by length, then by value.
struct Sorted {
  std::array<uint16_t, kMaxCodeBits + 1> count{};  // for each length
  std::array<uint16_t, kLiteralSymbols> symbols;
  int unused = 1;  // in units of codes of kMaxCodeBits; negative means too many
  unsigned longest = 0;
};

Sorted Sort(std::span<const uint8_t> lengths) {
  Sorted sorted;
  for (const uint8_t length : lengths) ++sorted.count[length];
  sorted.count[0] = 0;
  std::array<uint16_t, kMaxCodeBits + 1> at{};
  for (unsigned bits = 1; bits <= kMaxCodeBits; ++bits) {
    const int count = sorted.count[bits];
    sorted.unused = 2 * sorted.unused - count;
    if (sorted.unused < 0) return sorted;
    if (count != 0) sorted.longest = bits;
    if (bits < kMaxCodeBits) at[bits + 1] = static_cast<uint16_t>(at[bits] + count);
  }
  for (size_t s = 0; s < lengths.size(); ++s) {
    if (lengths[s] != 0) sorted.symbols[at[lengths[s]]++] = static_cast<uint16_t>(s);
  }
  return sorted;
}

// Fills a table whose first lookup takes `first` bits. `entries`: those of the symbols.
void Fill(const Sorted& sorted, const uint32_t* entries, unsigned first, uint32_t* table) {
  uint32_t code = 0;
  const uint16_t* symbol = sorted.symbols.data();
  table[0] = 0;
  for (unsigned bits = 1; bits <= first; ++bits) {
    // Until a longer code replaces it, an entry holds for both values of the next bit.
    const size_t half = size_t{1} << (bits - 1);
    std::memcpy(table + half, table, half * sizeof(uint32_t));
    for (int i = 0; i < sorted.count[bits]; ++i) {
      table[code] = WithCode(entries[*symbol++], bits);
      code = Next(code, bits);
    }
  }
  const uint32_t mask = (uint32_t{1} << first) - 1;
  const size_t size = size_t{1} << (kMaxCodeBits - first);
  uint32_t last = ~uint32_t{0};  // the first bits of the codes of the last subtable
  size_t end = size_t{1} << first;
  for (unsigned bits = first + 1; bits <= kMaxCodeBits; ++bits) {
    for (int i = 0; i < sorted.count[bits]; ++i) {
      if ((code & mask) != last) {
        last = code & mask;
        table[last] = static_cast<uint32_t>(end) << 16 | kSubtable | kSpecial;
        end += size;
      }
      const uint32_t entry = WithCode(entries[*symbol++], bits);
      for (size_t at = code >> first; at < size; at += size_t{1} << (bits - first)) {
        table[end - size + at] = entry;
      }
      code = Next(code, bits);
    }
  }
}

bool Build(std::span<const uint8_t> lengths, const uint32_t* entries, unsigned first,
           uint32_t* table) {
  const Sorted sorted = Sort(lengths);
  if (sorted.unused < 0) return false;
  if (sorted.unused == 0) {
    Fill(sorted, entries, first, table);
    return true;
  }
  if (sorted.longest > 1) return false;
  const size_t size = size_t{1} << first;
  std::fill_n(table, size, kSpecial);
  for (size_t i = 0; sorted.longest == 1 && i < size; i += 2) {
    table[i] = WithCode(entries[sorted.symbols[0]], 1);
  }
  return true;
}

Codes MakeFixed() {
  Codes codes{};
  std::array<uint8_t, kLiteralSymbols> lengths;
  for (size_t s = 0; s < lengths.size(); ++s) {
    lengths[s] = s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8;
  }
  (void)BuildLiterals(lengths, codes);
  JoinLiterals(codes);
  std::array<uint8_t, kDistanceSymbols> distances;
  distances.fill(5);
  (void)BuildDistances(distances, codes);
  return codes;
}

}  // namespace

bool BuildLiterals(std::span<const uint8_t> lengths, Codes& codes) {
  return Build(lengths, kLiterals.data(), kLiteralBits, codes.literals.data());
}

bool BuildDistances(std::span<const uint8_t> lengths, Codes& codes) {
  return Build(lengths, kDistances.data(), kDistanceBits, codes.distances.data());
}

void JoinLiterals(Codes& codes) {
  uint32_t* const table = codes.literals.data();
  for (uint32_t i = 1 << kLiteralBits; i-- > 0;) {  // an entry's second one is not after it
    const uint32_t entry = table[i], second = table[i >> DroppedBits(entry)];
    const bool pair = (entry & second & kLiteral) != 0 &&
                      DroppedBits(entry) + DroppedBits(second) <= kLiteralBits;
    table[i] = pair ? (entry | kPair | (second >> 16) << 24) + DroppedBits(second) : entry;
  }
}

bool BuildLengths(std::span<const uint8_t> lengths, LengthCodes& codes) {
  const Sorted sorted = Sort(lengths);
  if (sorted.longest == 0 && sorted.unused > 0) {
    codes.fill(WithCode(kLengths[0], 1));
    return true;
  }
  if (sorted.unused != 0) return false;
  Fill(sorted, kLengths.data(), kLengthBits, codes.data());
  return true;
}

const Codes& FixedCodes() {
  static const Codes codes = MakeFixed();
  return codes;
}

}  // namespace stoker::png
