// The kernel. Compiled with --expt-relaxed-constexpr, because it calls the constexpr functions of
// deferred_ops-inl.h.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "gpu/ops/deferred_ops-inl.h"
#include "gpu/ops/deferred_ops_cuda.h"

namespace stoker {

namespace deferred {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMaxBlocksDown = 65535;

__device__ uint4 Four(const uint32_t (&words)[4]) {
  return make_uint4(words[0], words[1], words[2], words[3]);
}

// These intrinsics are never fused, for any compiler flags.
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
    *reinterpret_cast<uint4*>(to) = Four(words);
  }

  // A full warp has 1,536 consecutive bytes of a row, 48 for each thread. If each thread stored its
  // own bytes, the warp would write halves of the 32-byte sectors of memory; so the threads
  // exchange pieces and write neighbouring ones. Called once per thread: `pieces` is not written
  // again.
  static __device__ void StoreParts(uint8_t* to, const uint32_t (&parts)[3][4]) {
    __shared__ uint4 pieces[3 * kThreads];
    if (__activemask() != ~0U) {
      for (int p = 0; p < 3; ++p) Store(to + 16 * p, parts[p]);
      return;
    }
    const unsigned lane = threadIdx.x % 32;
    uint4* const mine = pieces + 3 * (threadIdx.x - lane);  // the warp's
    for (int p = 0; p < 3; ++p) mine[3 * lane + p] = Four(parts[p]);
    __syncwarp();
    auto* const first = reinterpret_cast<uint4*>(to - 48 * lane);
    for (int p = 0; p < 3; ++p) first[32 * p + lane] = mine[32 * p + lane];
  }

  template <typename T>
  static __device__ void Put(uint8_t* to, T bits) {
    *reinterpret_cast<T*>(to) = bits;
  }
};

// Blocks: in x across the units of a row; in y and z down the rows.
template <DType kType, Layout kLayout, Extent kExtent, bool kGroups>
__global__ void __launch_bounds__(kThreads)
    DeferredOpsKernel(const __grid_constant__ DeferredOpsJob job, uint32_t units) {
  const uint32_t unit = blockIdx.x * kThreads + threadIdx.x;
  const int64_t row = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  if (unit >= units || row >= job.rows) return;
  if constexpr (kGroups) {
    ApplyDeferredToGroup<CudaMachine, kType, kLayout, kExtent>(job, row, unit);
  } else {
    ApplyDeferredToPixel<CudaMachine, kType, kLayout, kExtent>(job, row, unit);
  }
}

template <DType kType, Layout kLayout, Extent kExtent>
auto KernelOf(bool groups) {
  return groups ? &DeferredOpsKernel<kType, kLayout, kExtent, true>
                : &DeferredOpsKernel<kType, kLayout, kExtent, false>;
}

template <DType kType, Layout kLayout, Extent kExtent>
cudaError_t Load() {
  cudaFuncAttributes unused;
  const cudaError_t error = cudaFuncGetAttributes(&unused, KernelOf<kType, kLayout, kExtent>(true));
  if (error != cudaSuccess) return error;
  return cudaFuncGetAttributes(&unused, KernelOf<kType, kLayout, kExtent>(false));
}

template <DType kType, Layout kLayout, Extent kExtent>
cudaError_t Launch(DeferredOpsJob job, cudaStream_t stream) {
  const bool groups = InGroups<kType>(job);
  uint32_t units = groups ? PixelsOf(job) / kGroup<kType> : PixelsOf(job);
  const int64_t down = std::min(job.rows, kMaxBlocksDown);
  const dim3 blocks((units - 1) / kThreads + 1, static_cast<unsigned>(down),
                    static_cast<unsigned>((job.rows - 1) / down + 1));
  void* arguments[] = {&job, &units};
  return cudaLaunchKernel(KernelOf<kType, kLayout, kExtent>(groups), blocks, dim3(kThreads),
                          arguments, 0, stream);
}

// Returns the error and clears the runtime's last one, so that no other caller sees it.
int Forgotten(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

cudaError_t LoadAll() {
  constexpr DType kTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  for (const DType type : kTypes) {
    for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
      for (const Extent extent : {Extent::kConverts, Extent::kErases, Extent::kMixes}) {
        const cudaError_t error = WithKernel(type, layout, extent, [](auto t, auto l, auto e) {
          return Load<t.value, l.value, e.value>();
        });
        if (error != cudaSuccess) return error;
      }
    }
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace deferred

int LoadDeferredOps() { return deferred::Forgotten(deferred::LoadAll()); }

int LaunchDeferredOps(const DeferredOpsJob& job, void* stream) {
  if (job.rows == 0 || deferred::PixelsOf(job) == 0) return cudaSuccess;
  const auto launch = [&](auto t, auto l, auto e) {
    return deferred::Launch<t.value, l.value, e.value>(job, static_cast<cudaStream_t>(stream));
  };
  const deferred::Extent extent = deferred::ExtentOf(job);
  return deferred::Forgotten(deferred::WithKernel(job.dtype, job.layout, extent, launch));
}

}  // namespace stoker
