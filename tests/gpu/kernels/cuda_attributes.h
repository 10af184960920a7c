// CUDA's attributes of functions and variables. Only clang, as a compiler of CUDA, understands
// them.
#pragma once

#ifdef __CUDA__
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#else
#define __device__
#define __global__
#define __shared__ static  // blocks run one after the other
#endif
#define __grid_constant__
#define __launch_bounds__(...)
