// Codes coefficients as entropy-coded data of a baseline JPEG: the part of ScanWriter that takes
// the time. The codes, the bits and the words are also those of a progressive JPEG (pass_coding.h).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transforms/packed/format.h"

namespace stoker::packed {

// The codes of a component's symbols. An entry has a symbol's code, zeros for the number after it,
// and in the lowest 8 bits the number of bits that both have: 0 for a symbol that has no code.
struct ScanCodes {
  std::array<uint64_t, 256> dc, ac;
};

inline constexpr int kZeros16 = 0xF0;  // the symbol for 16 zeros
inline constexpr int kEndOfBlock = 0;

// The bits after a symbol, and their number.
struct Number {
  uint16_t bits;
  uint16_t size;
};

constexpr Number NumberOf(int value) {
  const auto size = std::bit_width(static_cast<unsigned>(value < 0 ? -value : value));
  const int bits = value < 0 ? value - 1 : value;
  return {static_cast<uint16_t>(bits & ((1 << size) - 1)), static_cast<uint16_t>(size)};
}

// Writes bits, from the highest of each byte on; up to 8 bytes after them may be written.
class BitSink {
 public:
  // The bits above the lowest `count`, which is at most 56, must be zero.
  void Put(uint64_t bits, unsigned count) {
    bits_ = bits_ << count | bits;
    count_ += count;
    const uint64_t swapped = __builtin_bswap64(bits_ << (-count_ % 64));
    std::memcpy(next_, &swapped, sizeof(swapped));
    next_ += count_ / 8;
    count_ %= 8;
  }
  // Fills the last byte with zeros or ones.
  void Fill(bool with_zeros) {
    const unsigned missing = (8 - count_) % 8;
    Put(with_zeros ? 0 : (1u << missing) - 1, missing);
  }

  // The end of the whole bytes.
  uint8_t* next() const { return next_; }
  void MoveTo(uint8_t* next) { next_ = next; }

 private:
  uint8_t* next_ = nullptr;
  uint64_t bits_ = 0;  // the lowest count_ are still to be written
  unsigned count_ = 0;
};

// The positions of a block's words in its group, in zig-zag order.
constexpr std::array<uint16_t, 64> MakeWordsOfZigZag() {
  std::array<uint16_t, 64> words{};
  for (size_t k = 0; k < words.size(); ++k) {
    for (int at = 0; at < 64; ++at) {
      if (CoefficientOf(at / 4, at % 4) != jpeg::kZigZag[k]) continue;
      words[k] = static_cast<uint16_t>(at / 4 * kQuadWords + at % 4);
    }
  }
  return words;
}
inline constexpr std::array<uint16_t, 64> kWordOfZigZag = MakeWordsOfZigZag();

// Writes, for each block of `groups` groups, which of its AC coefficients are not zero, as bits in
// zig-zag order. `words`: as UnpackRun writes them, 64-byte aligned.
void FindNonZero(const int16_t* words, int groups, uint64_t* non_zero);
void FindNonZeroPlain(const int16_t* words, int groups, uint64_t* non_zero);  // the reference

// Writes masks of each block's AC coefficients, likewise: for each level below `levels` (at most
// kMostLevels) those with this bit in their absolute value, those that are at least 1 << levels,
// and those that are negative.
inline constexpr int kMostLevels = 14;
constexpr int MasksOf(int levels) { return levels + 2; }
void FindBits(const int16_t* words, int groups, int levels, uint64_t* masks);
void FindBitsPlain(const int16_t* words, int groups, int levels, uint64_t* masks);  // the reference

// The groups of each row of blocks in a row of MCUs, and the results of FindNonZero; of FindBits in
// a progressive JPEG.
struct McuWords {
  std::array<const int16_t*, 4> words{};
  std::array<const uint64_t*, 4> masks{};
  int levels = 0;  // of FindBits
};

// The most bytes of an MCU: six blocks of 64 numbers with a code each, plus the bytes that BitSink
// may write past them.
inline constexpr size_t kMcuRoom = 2048;
static_assert(kMcuRoom >= 6 * 64 * (16 + 17) / 8 + 16);

// Codes MCUs [from, to). `predictor`: each component's last DC coefficient. Symbols must have codes
// of at most 16 bits, for numbers of at most 11 (DC) and 10 bits (AC): otherwise the bits are
// unspecified. For any words and codes, nothing is written after kMcuRoom bytes for each MCU and
// one kMcuRoom more.
void CodeMcus(const BlockRows& rows, const McuWords& mcus, int from, int to,
              std::span<const ScanCodes, 3> codes, std::array<int, 3>& predictor, BitSink& bits);
void CodeMcusPlain(const BlockRows& rows, const McuWords& mcus, int from, int to,
                   std::span<const ScanCodes, 3> codes, std::array<int, 3>& predictor,
                   BitSink& bits);  // the reference, which does not need the masks

}  // namespace stoker::packed
