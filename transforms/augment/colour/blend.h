// The arithmetic of blending colors, in binary32.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {

// Clamps to 0…255 and drops the fraction.
inline uint8_t CutToByte(float value) {
  return static_cast<uint8_t>(std::min(std::max(value, 0.0F), 255.0F));
}

// factor × value + sum, rounded once, like the fused instruction of most CPUs: a product of two
// binary32 numbers is exact in a double, and its sum with 24 more bits practically exact.
inline float Fused(float factor, float value, float sum) {
  return static_cast<float>(static_cast<double>(factor) * static_cast<double>(value) +
                            static_cast<double>(sum));
}

// value × factor + other × (1 − factor), fused, as torchvision's tensors compute it on most CPUs:
// with factors of few decimals, like AutoAugment's, many results are integers or just below.
struct BlendWeights {
  // Both weights are rounded separately, as in torchvision. (∞ − ∞ is NaN.)
  explicit BlendWeights(double of_value)
      : factor(static_cast<float>(std::min(of_value, 1e30))),
        rest(static_cast<float>(1.0 - std::min(of_value, 1e30))) {}
  uint8_t operator()(float value, float other) const {
    return CutToByte(Fused(rest, other, value * factor));
  }
  float factor;
  float rest;
};

// floor(0.2989 R + 0.587 G + 0.114 B), exact.
inline int GrayOf(int red, int green, int blue) {
  return (2989 * red + 5870 * green + 1140 * blue) / 10000;
}

}  // namespace stoker
