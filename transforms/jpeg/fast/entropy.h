// Phase 4: entropy-coded data to coefficients, or past them.
//
// Works on data without stuffed zeros (see scan_data.h), a number of MCUs at a time. Where only the
// position behind some MCUs is of interest, and their DC coefficients, skipping is faster than
// decoding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transforms/jpeg/fast/huffman.h"

namespace stoker::jpeg {

// No MCU takes more bytes: six blocks of a DC coefficient (16 + 11 bits) and 63 others (16 + 10).
inline constexpr size_t kMcuBytes = 1280;
static_assert(kMcuBytes >= 6 * (16 + kMaxDcSize + 63 * (16 + kMaxAcSize)) / 8 + 1 + 8);

// Four blocks of a row side by side, ready for the inverse DCT: 8 rows of 4 blocks of 8
// coefficients, and behind them room for what decoding writes beyond the end of a block.
inline constexpr int kGroupBlocks = 4;
inline constexpr int kGroupRow = 8 * kGroupBlocks;
inline constexpr int kGroupStride = 9 * kGroupRow;  // coefficients

// The next bits: `count` of them are in the highest bits of `window`, and `next` points at the byte
// that follows those.
struct BitReader {
  uint64_t window = 0;
  int64_t count = 0;
  const uint8_t* next = nullptr;

  // Whether bits behind `end` have been used.
  bool Beyond(const uint8_t* end) const { return (next - end) * 8 > count; }
};

// One block of the MCU.
struct McuBlock {
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  const SkipTable* skip = nullptr;
  int component = 0;
  int16_t* groups = nullptr;  // of the row of blocks that it belongs to; all zero
  uint8_t* last = nullptr;    // of each block of that row: k of its last coefficient
  int columns = 1;            // blocks that an MCU has in the row
  int column = 0;             // which of them it is
};

struct EntropyState {
  BitReader reader;
  // Checked after each MCU: parsing ends behind the first that uses bits beyond it. kMcuBytes + 8
  // bytes behind it can be read.
  const uint8_t* stop = nullptr;
  std::array<int32_t, 3> dc{};  // predictors
  std::array<McuBlock, 6> block;
  int blocks = 0;
  // An invalid code, or a run beyond the end of a block. What has been decoded is then worthless.
  bool damaged = false;
};

// At most `count` MCUs; `column` is the first one's, in its row of groups. Returns how many have
// been parsed: all unless `stop` was passed.
int DecodeMcus(EntropyState& state, int column, int count);
int SkipMcus(EntropyState& state, int count);

// The plain twins: bit by bit. Same results, `damaged` included, as long as nothing is damaged.
int DecodeMcusPlain(EntropyState& state, int column, int count);
int SkipMcusPlain(EntropyState& state, int count);

}  // namespace stoker::jpeg
