// The part of CUDA's header of this name that gpu/*.cu use.
#pragma once

#include <cstdint>

#include "tests/gpu/kernels/cuda_attributes.h"

struct __half {
  uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};

__device__ __half __float2half_rn(float value);
__device__ __half2 __floats2half2_rn(float a, float b);
__device__ float __half2float(__half value);
__device__ uint16_t __half_as_ushort(__half value);
__device__ __half __ushort_as_half(uint16_t bits);
