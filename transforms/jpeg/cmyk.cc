#include "transforms/jpeg/cmyk.h"

namespace stoker {
namespace {

// a·b/255 to nearest, without a division (Blinn, "Three wrongs make a right", 1995).
unsigned Scale(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return (product + (product >> 8)) >> 8;
}

}  // namespace

void ConvertInvertedCmyk(const uint8_t* cmyk, size_t pixels, uint8_t* rgb) {
  for (size_t i = 0; i < pixels; ++i, cmyk += 4, rgb += 3) {
    const unsigned k = cmyk[3];
    // k − (255 − c)·k/255 rather than c·k/255: this is Pillow's rounding.
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(k - Scale(255u - cmyk[c], k));
  }
}

}  // namespace stoker
