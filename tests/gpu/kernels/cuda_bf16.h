// The part of CUDA's header of this name that gpu/*.cu use.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/half.h"

struct __nv_bfloat16 {
  uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

// CUDA converts every NaN to this one, which is not stoker's.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return {std::isnan(value) ? uint16_t{0x7fff} : stoker::BFloat16Bits(value)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return {__float2bfloat16_rn(a), __float2bfloat16_rn(b)};
}
inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
