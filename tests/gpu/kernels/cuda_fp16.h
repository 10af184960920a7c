// The part of CUDA's header of this name that gpu/*.cu use.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/half.h"

struct __half {
  uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};

// CUDA converts every NaN to this one, which is not stoker's.
inline __half __float2half_rn(float value) {
  return {std::isnan(value) ? uint16_t{0x7fff} : stoker::Float16Bits(value)};
}
inline __half2 __floats2half2_rn(float a, float b) {
  return {__float2half_rn(a), __float2half_rn(b)};
}
inline float __half2float(__half value) { return stoker::Float16Value(value.bits); }
inline uint16_t __half_as_ushort(__half value) { return value.bits; }
inline __half __ushort_as_half(uint16_t bits) { return {bits}; }
