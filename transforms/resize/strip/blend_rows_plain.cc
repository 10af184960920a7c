#include <algorithm>

#include "transforms/resize/strip/blend_rows.h"

namespace stoker {

void BlendRowsPlain(const RowBlend& b) {
  const ptrdiff_t taps = 2 * ptrdiff_t{b.taps.pairs};
  for (int r = 0; r < b.count; ++r) {
    const int output = b.first + r;
    const int16_t* low = b.taps.weights + output * taps;
    const int16_t* high = b.taps.high != nullptr ? b.taps.high + output * taps : nullptr;
    const uint8_t* rows = b.source + (b.taps.starts[output] - b.top) * b.source_stride;
    for (ptrdiff_t x = 0; x < b.bytes; ++x) {
      int sum = 1 << (b.taps.shift - 1);
      for (ptrdiff_t t = 0; t < taps; ++t) {
        const int weight = (high != nullptr ? high[t] * (1 << kHighShift) : 0) + low[t];
        sum += weight * rows[t * b.source_stride + x];
      }
      b.out[r * b.out_stride + x] = static_cast<uint8_t>(std::clamp(sum >> b.taps.shift, 0, 255));
    }
  }
}

}  // namespace stoker
