#include "transforms/augment/colour/weighted.h"

namespace stoker {

void AddWeightedPlain(float weight, const uint8_t* values, size_t count, float* sums) {
  for (size_t i = 0; i < count; ++i) sums[i] += weight * static_cast<float>(values[i]);
}

void CutSumsPlain(const float* sums, size_t count, uint8_t* values) {
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint8_t>(sums[i]);
}

}  // namespace stoker
