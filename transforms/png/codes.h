// The tables that decode DEFLATE's prefix codes (RFC 1951, 3.2). As in libdeflate, an entry has all
// that a symbol needs: the bits to drop, and a literal or the base of a length or distance. As in
// ISA-L and fdeflate, it may have two literals, if their codes are short.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::png {

// An entry's fields: bits 0…5: all bits to drop, also extra bits and those of a second literal;
// 8…11: the bits of the first code; 16…31: one or two literals, a base, or the place of a subtable.
inline constexpr uint32_t kEndOfBlock = 1 << 7;
inline constexpr uint32_t kPair = 1 << 12;      // of a literal: there are two
inline constexpr uint32_t kSubtable = 1 << 13;  // for the codes that begin with these bits
inline constexpr uint32_t kSpecial = 1 << 14;   // the end, a subtable, or otherwise no code
inline constexpr uint32_t kLiteral = 1 << 15;

constexpr unsigned DroppedBits(uint32_t entry) { return entry & 63; }
constexpr unsigned CodeBits(uint32_t entry) { return entry >> 8 & 15; }

// The bits of the first lookup. The longest code has kMaxCodeBits.
inline constexpr unsigned kMaxCodeBits = 15;
inline constexpr unsigned kLiteralBits = 11, kDistanceBits = 8, kLengthBits = 7;

// A subtable has an entry for each combination of the remaining bits, and serves two symbols or
// more.
inline constexpr size_t kLiteralSymbols = 288, kDistanceSymbols = 32, kLengthSymbols = 19;
constexpr size_t TableSize(unsigned bits, size_t symbols) {
  return (size_t{1} << bits) + symbols / 2 * (size_t{1} << (kMaxCodeBits - bits));
}

struct Codes {
  std::array<uint32_t, TableSize(kLiteralBits, kLiteralSymbols)> literals;  // and lengths
  std::array<uint32_t, TableSize(kDistanceBits, kDistanceSymbols)> distances;
};

// These build a table from the lengths of the codes of its symbols; 0 means no code. They return
// false for lengths that zlib refuses: those of too many codes, or of too few, unless there is at
// most one code, of one bit. `lengths`: at most as many as there are symbols.
bool BuildLiterals(std::span<const uint8_t> lengths, Codes& codes);
bool BuildDistances(std::span<const uint8_t> lengths, Codes& codes);

// Joins pairs of literals whose codes fit into the bits of the first lookup. Call at most once
// after BuildLiterals; only makes decoding faster.
void JoinLiterals(Codes& codes);

// Returns the entry of the code that `bits` begin with.
template <unsigned kFirstBits>
inline uint32_t FindEntry(const uint32_t* table, uint64_t bits) {
  constexpr uint64_t kMask = (uint64_t{1} << kFirstBits) - 1;
  constexpr uint64_t kRest = (uint64_t{1} << (kMaxCodeBits - kFirstBits)) - 1;
  const uint32_t entry = table[bits & kMask];
  return (entry & kSubtable) == 0 ? entry : table[(entry >> 16) + (bits >> kFirstBits & kRest)];
}

// Returns the base of the entry plus the extra bits, which follow its code.
inline uint32_t ValueOf(uint32_t entry, uint64_t bits) {
  const uint64_t both = bits & ((uint64_t{1} << DroppedBits(entry)) - 1);
  return (entry >> 16) + static_cast<uint32_t>(both >> CodeBits(entry));
}

// The codes of the lengths themselves: bits 16…31 of an entry are the symbol. Too few codes are
// refused, but with no code at all, each bit means 0, as in zlib.
using LengthCodes = std::array<uint32_t, size_t{1} << kLengthBits>;
bool BuildLengths(std::span<const uint8_t> lengths, LengthCodes& codes);

// Returns the codes of blocks that define none. Thread-safe.
const Codes& FixedCodes();

}  // namespace stoker::png
