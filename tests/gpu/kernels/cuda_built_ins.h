// What nvcc declares without being asked, and gpu/*.cu use: with this header a C++ compiler
// compiles them for the CPU. CMake includes it before each .cu.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tests/gpu/kernels/grid.h"
#include "tests/testing/fake_cuda/cuda_runtime_api.h"

#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(threads)
#define __shared__ static  // blocks run one after the other

// Alignment is checked by the sanitizers.
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }

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
