// Phase 4: entropy-coded data to coefficients, or past them.
//
// Works on data without stuffed zeros (see scan_data.h), a number of MCUs at a time. Where only the
// position behind some MCUs is of interest, and their DC coefficients, skipping is faster than
// decoding. Either waits for tables most of the time, so two photographs are parsed in turns.
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
  int columns = 1;            // blocks that an MCU has in the row of blocks that it belongs to
  int column = 0;             // which of them it is
  int16_t* groups = nullptr;  // of that row; all zero
  uint8_t* last = nullptr;    // of each block of that row: k of its last coefficient
};

// MCUs are parsed in rounds, of so many that every row of blocks advances by whole groups: then all
// rounds are alike, and nothing but the end of a round has to be looked at.
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
  // Parsing stops behind the first round that uses bits beyond it. kRoundBytes + 8 bytes behind it
  // can be read.
  const uint8_t* stop = nullptr;
  std::array<int32_t, 3> dc{};  // predictors
  std::array<McuBlock, 6> block;
  int blocks = 0;
  std::array<BlockStep, 6 * kRoundMcus> step;
  // An invalid code, or a run beyond the end of a block. What has been decoded is then worthless.
  bool damaged = false;
};

// MCUs that follow each other, to be decoded into their groups or to be skipped.
struct McuRun {
  EntropyState* state = nullptr;
  bool store = false;
  int column = 0;  // of the next MCU, in its row of groups
  int count = 0;   // MCUs that are left; not 0 when parsing begins

  // Where parsing is, in the middle of a round: the step, and the last coefficient of its block.
  int step = 0;
  int k = -1;

  bool at_stop() const { return k < 0; }
};

// The steps of a round, from the blocks of the MCU.
void ListSteps(EntropyState& state);

// What parses the next `count` MCUs. One run of a state at a time.
McuRun StartRun(EntropyState& state, bool store, int column, int count);

// Until all MCUs are parsed, or `stop` has been passed.
void Parse(McuRun& run);

// The same for two states in turns: one goes on while the other waits for its table. Until one of
// them is at a stop; the other may be in the middle of a block.
void ParseBoth(McuRun& a, McuRun& b);

// The plain twin: bit by bit. Same results, `damaged` included, as long as nothing is damaged.
void ParsePlain(McuRun& run);

}  // namespace stoker::jpeg
