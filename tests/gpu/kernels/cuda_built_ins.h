// The built-ins of CUDA that gpu/*.cu use and nvcc declares by itself. With this header a C++
// compiler compiles these files for the CPU; CMake includes it before each of them.
#pragma once

#include "tests/gpu/kernels/cuda_attributes.h"  // first: clang's own headers use them

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "tests/gpu/kernels/grid.h"
#include "tests/testing/devices/fake_cuda/cuda_runtime_api.h"

// Alignment is checked by the sanitizers.
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
__device__ inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

#ifdef __CUDA__
__device__ float rintf(float value);  // elsewhere the host's
#endif
__device__ float __fmul_rn(float a, float b);
__device__ float __fadd_rn(float a, float b);
__device__ double __dsqrt_rn(double x);

struct cudaFuncAttributes {};

template <typename... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, void (*kernel)(Parameters...)) {
  stoker::testing::LoadKernel(reinterpret_cast<const void*>(kernel));
  return cudaSuccess;
}

// Returns when the kernel has ended.
template <typename... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                             void** arguments, size_t /*shared_bytes*/, cudaStream_t) {
  const auto thread = [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    kernel(*static_cast<const Parameters*>(arguments[kAt])...);
  };
  const bool launched =
      stoker::testing::RunGrid(reinterpret_cast<const void*>(kernel), blocks, threads,
                               [&] { thread(std::index_sequence_for<Parameters...>()); });
  return launched ? cudaSuccess : cudaErrorInvalidConfiguration;
}
