// Packs runs (format.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/packed/format.h"

namespace stoker::packed {

// Bytes after a run that PackRun may write.
inline constexpr size_t kPackSlack = 8;

// Packs `blocks` blocks, 1 to kRunBlocks, to `run`: kRunBytes + kPackSlack bytes. `groups`: their
// coefficients as the entropy decoder writes them (transforms/jpeg/fast/entropy/entropy.h); those
// after the last block are zero. Returns the end of the run; null if a number has too many bits.
uint8_t* PackRun(const int16_t* groups, int blocks, uint8_t* run);
uint8_t* PackRunPlain(const int16_t* groups, int blocks, uint8_t* run);  // the reference

}  // namespace stoker::packed
