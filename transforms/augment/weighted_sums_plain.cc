#include "transforms/augment/weighted_sums.h"

namespace stoker {

void ToFloatsPlain(const uint8_t* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i];
}

void SumDownPlain(const float* weights, const float* const* rows, size_t taps, size_t count,
                  float* to) {
  for (size_t x = 0; x < count; ++x) {
    float sum = 0;
    for (size_t t = 0; t < taps; ++t) sum += weights[t] * rows[t][x];
    to[x] = sum;
  }
}

void SumAlongPlain(const float* weights, const float* values, size_t taps, size_t count,
                   uint8_t* to) {
  for (size_t x = 0; x < count; ++x) {
    float sum = 0;
    for (size_t t = 0; t < taps; ++t) sum += weights[t] * values[x + t];
    to[x] = static_cast<uint8_t>(sum + 0x1p23F - 0x1p23F);  // the last place of 2^23 is 1
  }
}

}  // namespace stoker
