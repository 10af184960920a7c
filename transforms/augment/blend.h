// The arithmetic that colours are mixed with: binary32, each product and sum rounded.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {

// Beyond it 255 × factor would overflow one day, and ∞ − ∞ is no number.
inline constexpr float kMostFactor = 1e30F;

// A factor and what is left for the other: 1 − factor.
struct BlendWeights {
  explicit BlendWeights(float of_value)
      : factor(std::min(of_value, kMostFactor)), rest(1 - factor) {}
  float factor;
  float rest;
};

// Cut to 0…255, fraction dropped.
inline uint8_t CutToByte(float value) {
  return static_cast<uint8_t>(std::min(std::max(value, 0.0F), 255.0F));
}

inline uint8_t Blended(float value, float other, const BlendWeights& weights) {
  return CutToByte(value * weights.factor + other * weights.rest);
}

// floor(0.2989 R + 0.587 G + 0.114 B), exact.
inline int GrayOf(int red, int green, int blue) {
  return (2989 * red + 5870 * green + 1140 * blue) / 10000;
}

}  // namespace stoker
