// Phase 4: decodes entropy-coded data to coefficients, or skips it.
//
// Works on data without stuffed zeros (see scan_data.h), several MCUs at a time. If only the
// position after some MCUs and their DC coefficients matter, skipping is faster than decoding.
// Either spends most of its time waiting for table lookups, so two photographs are parsed
// interleaved.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transforms/jpeg/fast/entropy/huffman.h"

namespace stoker::jpeg {

// The maximum size of an MCU: six blocks of a DC coefficient (16 + 11 bits) and 63 others (16 +
// 10).
inline constexpr size_t kMcuBytes = 1280;
static_assert(kMcuBytes >= 6 * (16 + kMaxDcSize + 63 * (16 + kMaxAcSize)) / 8 + 1 + 8);

// Four neighboring blocks of a row, laid out for the inverse DCT: 8 rows of 4 blocks of 8
// coefficients, followed by room for what decoding writes beyond the end of a block.
inline constexpr int kGroupBlocks = 4;
inline constexpr int kGroupRow = 8 * kGroupBlocks;
inline constexpr int kGroupStride = 9 * kGroupRow;  // coefficients

// The next bits: the highest `count` bits of `window` are valid, and `next` points at the byte that
// follows them.
struct BitReader {
  uint64_t window = 0;
  int64_t count = 0;
  const uint8_t* next = nullptr;

  // Whether bits after `end` have been used.
  bool Beyond(const uint8_t* end) const { return (next - end) * 8 > count; }
};

// One block of the MCU.
struct McuBlock {
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  const SkipTable* skip = nullptr;
  int component = 0;
  int columns = 1;            // blocks per MCU in this row of blocks
  int column = 0;             // index among them
  int16_t* groups = nullptr;  // of this row; all zero
  uint8_t* last = nullptr;    // for each block of this row, k of its last coefficient
};

// MCUs are parsed in rounds of enough MCUs that every row of blocks advances by whole groups:
// then all rounds are alike, and only the end of a round needs special handling.
inline constexpr int kRoundMcus = kGroupBlocks;
inline constexpr size_t kRoundBytes = kRoundMcus * kMcuBytes;

// One block of a round.
struct BlockStep {
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  const SkipTable* skip = nullptr;
  int component = 0;
  int columns = 1;
  int16_t* block = nullptr;
  uint8_t* last = nullptr;
};

struct EntropyState {
  BitReader reader;
  // Parsing stops after the first round that uses bits beyond it. kRoundBytes + 8 bytes after it
  // must be readable.
  const uint8_t* stop = nullptr;
  std::array<int32_t, 3> dc{};  // predictors
  std::array<McuBlock, 6> block;
  int blocks = 0;
  std::array<BlockStep, 6 * kRoundMcus> step;
  // An invalid code, or a run beyond the end of a block, was found: all decoded data are invalid.
  bool damaged = false;
};

// Consecutive MCUs to be decoded into their groups or to be skipped.
struct McuRun {
  EntropyState* state = nullptr;
  bool store = false;
  int column = 0;  // of the next MCU in its row of groups
  int count = 0;   // remaining MCUs; not 0 when parsing begins

  // The position within a round: the step, and the last coefficient of its block.
  int step = 0;
  int k = -1;

  bool at_stop() const { return k < 0; }
};

// Lists the steps of a round from the blocks of the MCU.
void ListSteps(EntropyState& state);

// Starts a run over the next `count` MCUs. Only one run of a state may be active at a time.
McuRun StartRun(EntropyState& state, bool store, int column, int count);

// Parses until all MCUs are done, or `stop` has been passed.
void Parse(McuRun& run);

// The same for two interleaved states: one continues while the other waits for its table. Returns
// when one of them is at a stop; the other may be in the middle of a block.
void ParseBoth(McuRun& a, McuRun& b);

// The reference: bit by bit. Same results, including `damaged`, as long as nothing is damaged.
void ParsePlain(McuRun& run);

}  // namespace stoker::jpeg
