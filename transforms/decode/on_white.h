// OnWhite: how transparent pixels become opaque ones.
#pragma once

#include <cstdint>

namespace stoker {

// Pillow's alpha_composite of a value onto opaque white, in its fixed point.
constexpr uint8_t OnWhite(uint32_t value, uint32_t alpha) {
  if (alpha == 0) return 255;
  constexpr uint32_t kBits = 7;
  const uint32_t sum = ((value * alpha + 255 * (255 - alpha)) << kBits) + (0x80 << kBits);
  return static_cast<uint8_t>((((sum >> 8) + sum) >> 8) >> kBits);
}

}  // namespace stoker
