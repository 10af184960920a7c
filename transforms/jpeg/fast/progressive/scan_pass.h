// ScanPass: decodes the entropy-coded data of one scan of a progressive JPEG, some blocks at a
// time.
//
// A later scan needs to know, of each coefficient in the image, whether it is zero so far; of the
// region's blocks alone it needs the coefficients. So every block has a mask, in which coefficient
// k is bit 63 - k, and those outside the region have nothing else: correcting their coefficients is
// skipping as many bits. Bits are read from the highest down, too, so that those of a block are
// spread over the coefficients of its mask in one step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/entropy/huffman.h"

namespace stoker::jpeg {

inline constexpr int kScanWindow = 10;

// A code for coefficients of an AC scan.
struct ScanEntry {
  int16_t value;  // 0 for a run of zeros alone
  uint8_t bits;   // of code and value
  uint8_t
      step;  // from k to the coefficient, 1 to 16; or kRunOfBlocks + r, kLongValue, kLongScanCode
};
inline constexpr int kRunOfBlocks = 64;  // code EOBr: the number of blocks has r more bits
inline constexpr int kLongValue = 128;   // bits: of the code; value: the symbol
inline constexpr int kLongScanCode = 129;

struct ScanTable {
  std::array<ScanEntry, 1 << kScanWindow> entry;
  LongCodes codes;
};

// Returns false as BuildAcTable does, except that all EOBn codes are defined.
bool BuildScanTable(HuffmanSpec spec, ScanTable& table);

// Consecutive blocks of a component, from left to right.
struct BlockSpan {
  uint64_t* mask = nullptr;   // the first block's
  int16_t* groups = nullptr;  // of the region's blocks; null if none of the blocks is one
  int first = 0;              // index in `groups` of the first block; negative left of the region
  int kept = 0;               // number of blocks in `groups`
};

// A row of a component's blocks in each MCU; in a scan of one component, a single block.
struct McuSpan {
  BlockSpan blocks;  // of this row of blocks
  const DcTable* dc = nullptr;
  int predictor = 0;  // index in EntropyState::dc
  int columns = 1;    // blocks per MCU in this row
};

// The functions below decode blocks (DC scans: MCUs) [from, to), and return the first one that is
// not decoded: `to`, or less if state.stop has been passed, or perhaps if state.damaged is set.

struct AcScan {
  const ScanTable* table = nullptr;
  int first = 1;
  int last = 63;
  int low = 0;
  uint32_t end_run = 0;  // blocks left that have no further coefficients in this scan
};

int DecodeAc(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from, int to);
int RefineAc(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from, int to);

struct DcScan {
  std::array<McuSpan, 6> span;  // in the order of the MCU's blocks, row by row
  int spans = 0;
  int low = 0;
};

int DecodeDc(EntropyState& state, const DcScan& scan, int from, int to);
int RefineDc(EntropyState& state, const DcScan& scan, int from, int to);

// The references: bit by bit, from the coefficients alone, so all blocks must be kept. They neither
// use nor change the masks.
struct PlainPass {
  static int DecodeAc(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from, int to);
  static int RefineAc(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from, int to);
  static int DecodeDc(EntropyState& state, const DcScan& scan, int from, int to);
  static int RefineDc(EntropyState& state, const DcScan& scan, int from, int to);
};

}  // namespace stoker::jpeg
