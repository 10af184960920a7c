#include "transforms/resize/emit.h"

namespace stoker {

void EmitRowsPlain(const ResampledRows& from, const RowFormat& format, uint8_t* out) {
  for (int r = 0; r < from.rows; ++r) {
    for (int x = 0; x < from.pixels; ++x) {
      const uint8_t* row = from.values + r * from.stride;
      uint8_t rgb[3];
      for (int c = 0; c < 3; ++c) {
        if (from.channels == 1) {
          rgb[c] = row[x];
        } else {
          rgb[c] = from.plane != 0 ? row[c * from.plane + x] : row[3 * x + c];
        }
      }
      StorePixel(format, rgb, out + r * format.down + x * format.along);
    }
  }
}

}  // namespace stoker
