#include "transforms/resize/emit.h"

namespace stoker {

void EmitBlockPlain(const Block& block, const RowFormat& format, uint8_t* out) {
  for (int r = 0; r < block.rows; ++r) {
    for (int x = 0; x < block.pixels; ++x) {
      uint8_t rgb[3];
      for (int c = 0; c < 3; ++c) {
        const int column = x * block.channels + (block.channels == 3 ? c : 0);
        rgb[c] = block.columns[column * kStripRows + r];
      }
      StorePixel(format, rgb, out + r * format.down + x * format.along);
    }
  }
}

}  // namespace stoker
