// Phase 3: builds lookup tables that decode several codes at a time.
//
// Nearly every photograph has its own tables, so building them must be cheap: canonical codes fill
// a table from its start, and the entries after a short code are a smaller table of the same kind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transforms/jpeg/fast/frame_header.h"

namespace stoker::jpeg {

// The number of bits per lookup.
inline constexpr int kDcWindow = 9;
inline constexpr int kAcWindow = 10;
inline constexpr int kSkipWindow = 12;

// The largest size of a value that an AcEntry has in full.
inline constexpr int kMaxFirstSize = 7;

// The largest sizes of values that 8-bit samples can have: a table with larger ones is refused.
inline constexpr int kMaxDcSize = 11;
inline constexpr int kMaxAcSize = 10;

// A larger DC predictor ends the fast path, at the latest after a row of MCUs: none overflows.
inline constexpr int kMaxPredictor = 1 << 30;

// A block's coefficients are counted by k, the zig-zag index of the last one so far. Every uncommon
// case pushes k beyond 62: the end-of-block code adds kEndOfBlock, a code longer than the window
// kLongCode. A run that leaves the block adds at most 32.
inline constexpr int kEndOfBlock = 129;
inline constexpr int kLongCode = 65;

// Decodes one code of any length, for codes longer than the windows.
struct LongCodes {
  std::array<int32_t, 17> limit{};   // first 16-bit value beyond the codes of this length
  std::array<int32_t, 17> offset{};  // from a code to its symbol's index
  std::array<uint8_t, 256> symbol{};
};

struct DcEntry {
  uint8_t bits;       // bits of code and value; 0 means the code is longer than the window
  uint8_t size;       // of the value
  uint8_t code_bits;  // of the code
  uint8_t unused;
};

// One or two coefficients.
struct AcEntry {
  uint8_t bits;        // of all codes and values
  uint8_t first_step;  // from k to the first coefficient
  uint8_t step;        // from k to the last one
  int8_t first_value;  // complete; 0 if there is only one coefficient
  uint16_t place;      // of the last one's value in 64 bits that begin with the window: the number
                       // of bits after it, plus 256 × its size (as the instruction BEXTR has it)
  int16_t bias;        // 1 - (1 << size): added to a value with a leading zero bit
};
static_assert(sizeof(AcEntry) == 8);

// The coefficients that begin in the window.
struct SkipEntry {
  uint8_t bits;
  uint8_t step;
};

// Entries that may be written after the end of each table.
inline constexpr size_t kTableSlack = 16;

struct DcTable {
  alignas(64) std::array<DcEntry, (1 << kDcWindow) + kTableSlack> entry;
  LongCodes codes;
};
struct AcTable {
  alignas(64) std::array<AcEntry, (1 << kAcWindow) + kTableSlack> entry;
  LongCodes codes;
};
struct SkipTable {
  alignas(64) std::array<SkipEntry, (1 << kSkipWindow) + kTableSlack> entry;
};

// Returns false if libjpeg-turbo would refuse the table: too many codes of a length.
bool FillLongCodes(HuffmanSpec spec, LongCodes& codes);

// Returns false if libjpeg-turbo would refuse the table (too many codes of a length) or no 8-bit
// baseline image can need it (a value of too many bits, an undefined symbol); the table is then
// unspecified.
bool BuildDcTable(HuffmanSpec spec, DcTable& table);
bool BuildAcTable(HuffmanSpec spec, AcTable& table);
// Precondition: BuildAcTable returned true for the same spec.
void BuildSkipTable(HuffmanSpec spec, SkipTable& table);

// The reference: decodes each possible window bit by bit.
struct PlainTables {
  static void FillDc(HuffmanSpec spec, DcTable& table);
  static void FillAc(HuffmanSpec spec, AcTable& table);
  static void FillSkip(HuffmanSpec spec, SkipTable& table);
};

}  // namespace stoker::jpeg
