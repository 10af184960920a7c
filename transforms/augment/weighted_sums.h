// The sums that smoothing is made of, over rows of floats: each product and each sum rounded, from
// the first tap to the last.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

// Values and bytes behind the last that may be read and written.
inline constexpr size_t kSumsOvershoot = 64;

void ToFloats(const uint8_t* from, size_t count, float* to);
// to[x] = Σ weights[t] × rows[t][x]
void SumDown(const float* weights, const float* const* rows, size_t taps, size_t count, float* to);
// to[x] = Σ weights[t] × values[x + t], at most 255, rounded to the nearest, ties to even.
void SumAlong(const float* weights, const float* values, size_t taps, size_t count, uint8_t* to);

// The plain twins.
void ToFloatsPlain(const uint8_t* from, size_t count, float* to);
void SumDownPlain(const float* weights, const float* const* rows, size_t taps, size_t count,
                  float* to);
void SumAlongPlain(const float* weights, const float* values, size_t taps, size_t count,
                   uint8_t* to);

}  // namespace stoker
