// The kernel. Compiled with --expt-relaxed-constexpr, for what finish-inl.h calls.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "gpu/finish-inl.h"
#include "gpu/finish_cuda.h"

namespace stoker {

namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMostBlocksDown = 65535;

// These intrinsics are never fused with each other, whatever the compiler's flags.
struct CudaMachine {
  static __device__ float Multiply(float a, float b) { return __fmul_rn(a, b); }
  static __device__ float Add(float a, float b) { return __fadd_rn(a, b); }
  static __device__ float Nearest(float value) { return rintf(value); }
  static __device__ double Root(double x) { return __dsqrt_rn(x); }
  static __device__ uint32_t Float16(float value) {
    return __half_as_ushort(__float2half_rn(value));
  }
  static __device__ uint32_t BFloat16(float value) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
  static __device__ uint32_t Float16s(float a, float b) {
    const __half2 halves = __floats2half2_rn(a, b);
    return reinterpret_cast<const uint32_t&>(halves);
  }
  static __device__ uint32_t BFloat16s(float a, float b) {
    const __nv_bfloat162 halves = __floats2bfloat162_rn(a, b);
    return reinterpret_cast<const uint32_t&>(halves);
  }
  static __device__ float Float16Value(uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<uint16_t>(bits)));
  }
  static __device__ void Load(const uint8_t* from, uint32_t (&words)[3]) {
    const auto* const each = reinterpret_cast<const uint32_t*>(from);
    for (int i = 0; i < 3; ++i) words[i] = each[i];
  }
  static __device__ void Load(const uint8_t* from, uint32_t (&words)[6]) {
    const auto* const pairs = reinterpret_cast<const uint2*>(from);
    for (int i = 0; i < 3; ++i) {
      const uint2 pair = pairs[i];
      words[2 * i] = pair.x;
      words[2 * i + 1] = pair.y;
    }
  }
  static __device__ void Load(const uint8_t* from, uint32_t (&words)[12]) {
    const auto* const fours = reinterpret_cast<const uint4*>(from);
    for (int i = 0; i < 3; ++i) {
      const uint4 four = fours[i];
      words[4 * i] = four.x;
      words[4 * i + 1] = four.y;
      words[4 * i + 2] = four.z;
      words[4 * i + 3] = four.w;
    }
  }
  static __device__ void Store(uint8_t* to, const uint32_t (&words)[4]) {
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  }
  template <typename T>
  static __device__ void Put(uint8_t* to, T bits) {
    *reinterpret_cast<T*>(to) = bits;
  }
};

// Blocks: across the units of a row, down the rows.
template <DType kType, Layout kLayout, Extent kExtent, bool kGroups>
__global__ void __launch_bounds__(kThreads)
    FinishKernel(const __grid_constant__ FinishJob job, uint32_t units) {
  const uint32_t unit = blockIdx.x * kThreads + threadIdx.x;
  if (unit >= units) return;
  for (int64_t row = blockIdx.y; row < job.rows; row += gridDim.y) {
    if constexpr (kGroups) {
      FinishGroup<CudaMachine, kType, kLayout, kExtent>(job, row, unit);
    } else {
      FinishPixel<CudaMachine, kType, kLayout, kExtent>(job, row, unit);
    }
  }
}

template <DType kType, Layout kLayout, Extent kExtent>
cudaError_t Launch(FinishJob job, cudaStream_t stream) {
  const bool groups = InGroups<kType>(job);
  uint32_t units = groups ? PixelsOf(job) / kGroup<kType> : PixelsOf(job);
  auto* const kernel = groups ? &FinishKernel<kType, kLayout, kExtent, true>
                              : &FinishKernel<kType, kLayout, kExtent, false>;
  const dim3 blocks((units - 1) / kThreads + 1,
                    static_cast<unsigned>(std::min(job.rows, kMostBlocksDown)));
  void* arguments[] = {&job, &units};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, dim3(kThreads), arguments,
                          0, stream);
}

}  // namespace

int LaunchFinish(const FinishJob& job, void* stream) {
  if (job.rows == 0 || PixelsOf(job) == 0) return cudaSuccess;
  const cudaError_t error = WithKernelOf(job, [&](auto type, auto layout, auto extent) {
    return Launch<type.value, layout.value, extent.value>(job, static_cast<cudaStream_t>(stream));
  });
  if (error != cudaSuccess) (void)cudaGetLastError();  // it is told here, and to nobody else
  return error;
}

}  // namespace stoker
