// The arithmetic that colours are mixed with: binary32, each product and sum rounded.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {

// Cut to 0…255, fraction dropped.
inline uint8_t CutToByte(float value) {
  return static_cast<uint8_t>(std::min(std::max(value, 0.0F), 255.0F));
}

// value × factor + other × (1 − factor) of two whole numbers. Written so, it is the whole number it
// should be where factors have few decimals, and `value` where the factor is 1.
inline uint8_t Blended(int value, int other, float factor) {
  return CutToByte(static_cast<float>(other) + factor * static_cast<float>(value - other));
}

// floor(0.2989 R + 0.587 G + 0.114 B), exact.
inline int GrayOf(int red, int green, int blue) {
  return (2989 * red + 5870 * green + 1140 * blue) / 10000;
}

}  // namespace stoker
