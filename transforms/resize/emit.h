// The last phase of a strip: a block of finished values, as the horizontal pass leaves them, to the
// row of a batch. Here they become the row's type and layout, so that no pass over it is needed.
#pragma once

#include <cstdint>

#include "transforms/resize/row_format.h"

namespace stoker {

inline constexpr int kStripRows = 32;    // rows of a strip at most
inline constexpr int kStripPixels = 16;  // output pixels that are finished together

// Column (pixel × channels + channel) has kStripRows bytes, 64-byte aligned as a whole; columns of
// all kStripPixels pixels are there, whatever they hold behind `pixels`.
struct Block {
  const uint8_t* columns = nullptr;
  int channels = 3;  // 3, or 1: gray, which becomes three equal channels
  int rows = 0;      // 1…kStripRows
  int pixels = 0;    // 1…kStripPixels
};

// `out`: the place of the first row's first pixel. Writes the block's values and no byte beside
// them.
void EmitBlock(const Block& block, const RowFormat& format, uint8_t* out);

// The plain twin: same bytes.
void EmitBlockPlain(const Block& block, const RowFormat& format, uint8_t* out);

}  // namespace stoker
