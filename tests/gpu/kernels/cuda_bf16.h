// The part of CUDA's header of this name that gpu/*.cu use.
#pragma once

#include <cstdint>

#include "tests/gpu/kernels/cuda_attributes.h"

struct __nv_bfloat16 {
  uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

__device__ __nv_bfloat16 __float2bfloat16_rn(float value);
__device__ __nv_bfloat162 __floats2bfloat162_rn(float a, float b);
__device__ uint16_t __bfloat16_as_ushort(__nv_bfloat16 value);
