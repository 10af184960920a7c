// The format of a packed JPEG: the quantised coefficients of a JPEG at fixed positions of a bit
// stream instead of in Huffman codes, and all that is needed to restore the file to the byte.
// Numbers are little-endian; bits fill bytes from the lowest.
//
//   the rows of MCUs in the upper half of the image │ header │ those in the lower half
//
//   header, in bytes
//   8   F5 "stkjpg" 02: magic, and the format's version: 02 of a baseline JPEG, 03 of a progressive
//       one
//   4   0
//   4   the size of the JPEG
//   4   the size of its header: all before the first byte of entropy-coded data and, in a
//       progressive JPEG, all between the data of its scans
//   4   the size of its tail: all after the entropy-coded data, which is the end-of-image marker
//       and everything that follows it
//   4   the encoder's choices: 1 if zeros fill the last byte before a marker of the entropy-coded
//       data, 0 if ones do; in a progressive JPEG, 2 more if it is jpegli's (scan/pass_coding.h)
//   4   the CRC-32C of what precedes it here, and of the JPEG's header, the tail and the directory
//       the JPEG's header, tail
//       directory, for each row of MCUs, from top to bottom:
//   4     where the row ends; bytes of the header here do not count
//   4     the CRC-32C of the row
//
// Rows form parts (core/batch/row_parts.h). The rows of a crop and the header are one range of the
// file; a range that begins with a part, or with the header, and has the header, is a packed JPEG
// by itself, of which the other rows are missing:
//
//   part of the upper half: begins at a multiple of RowParts::kUnit
//   8   F5 "stkjpg" 02, or 03 as in the header
//   4   the distance from here to the header
//       rows of MCUs, without gaps; the last of a part may have bytes at its end that fill the unit
//
//   row of MCUs: the rows of blocks of all components, in the order of an MCU's blocks
//   2 × runs  the sizes of all runs, row by row
//       the runs, row by row
//
//   run: 16 blocks side by side, or what is left of the row: up to 4 groups
//   1   the width of a DC difference in bits: 0 to 10, or 11 for a width of 12
//   2   the DC coefficient of the first block
//   2 × width  differences of each block's DC coefficient to the one before, 0 for the first
//       groups
//
//   group: 4 blocks side by side. Blocks that the row does not have are zero.
//   1   the number of quads that follow, 0 to 16, in the order of kQuadOrder; all others are zero
//   1 × quads  the index in kWidths of each quad's widths
//       quads
//
//   quad: coefficients in two rows and two columns of 4 blocks: 16 words in two's complement,
//   end to end, block by block. Each of a block's four words has a width of its own, of 0 to 12
//   bits; together they have an even number of bits, so a quad is a whole number of bytes. The DC
//   coefficient's word is zero.
//
// Rows 0 and 2, 1 and 3, 4 and 6, 5 and 7 make quads, and columns likewise: the pairs of numbers
// whose products the inverse DCT adds.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch/packed_run.h"
#include "core/batch/row_parts.h"
#include "transforms/jpeg/fast/frame_header.h"

namespace stoker::packed {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::array<uint8_t, 7> kMagic = {0xF5, 's', 't', 'k', 'j', 'p', 'g'};
inline constexpr uint8_t kVersion = 2;             // of baseline JPEGs
inline constexpr uint8_t kProgressiveVersion = 3;  // which earlier releases refuse
inline constexpr int kMaxScans = 200;              // of a progressive JPEG

// Choices of an encoder.
inline constexpr uint32_t kPadsWithZeros = 1;
inline constexpr uint32_t kJpegliRuns = 2;  // of a progressive JPEG
constexpr uint32_t MostChoices(uint8_t version) { return version == kVersion ? 1 : 3; }

// The first bytes of the file, of each part of the upper half, and of the header.
struct Start {
  std::array<uint8_t, 7> magic = kMagic;
  uint8_t version = kVersion;
  uint32_t to_header = 0;  // bytes from here
  friend bool operator==(const Start&, const Start&) = default;
};
static_assert(sizeof(Start) == 12);

struct FixedPart {  // of the header
  Start start;
  uint32_t jpeg_bytes, header_bytes, tail_bytes;
  uint32_t choices;
  uint32_t checksum;
};
static_assert(sizeof(FixedPart) == 32);

struct DirectoryEntry {
  uint32_t end, checksum;
};
static_assert(sizeof(DirectoryEntry) == 8);

inline uint16_t LoadU16(const uint8_t* at) { return static_cast<uint16_t>(at[0] | at[1] << 8); }

// One row of blocks of a row of MCUs.
struct BlockRow {
  int component = 0;
  int row = 0;      // of the component's in an MCU
  int columns = 1;  // blocks of an MCU
  int blocks = 0;   // of the image

  int groups() const { return (blocks + kGroupBlocks - 1) / kGroupBlocks; }
  int runs() const { return (blocks + kRunBlocks - 1) / kRunBlocks; }
};

// The rows of blocks of each row of MCUs.
struct BlockRows {
  explicit BlockRows(const jpeg::FrameHeader& header);

  std::array<BlockRow, 4> row;
  int count = 0;
  int runs = 0;
  int mcus = 0;  // across

  std::span<const BlockRow> all() const { return {row.data(), static_cast<size_t>(count)}; }
};

int McuRowsOf(const jpeg::FrameHeader& header);

// The first row of the lower half.
constexpr int MiddleRow(int mcu_rows) { return FirstRowOf(kPartBehindHeader, mcu_rows); }

// Whether a part of the upper half begins with this row.
constexpr bool BeginsPart(int mcu_row, int mcu_rows) {
  if (mcu_row >= MiddleRow(mcu_rows)) return false;
  int part = 0;
  while (FirstRowOf(part, mcu_rows) < mcu_row) ++part;
  return FirstRowOf(part, mcu_rows) == mcu_row;
}

}  // namespace stoker::packed
