// The kernels. Compiled with --expt-relaxed-constexpr, because they call the constexpr functions of
// crop_kernels-inl.h. They are templates because nvcc checks a template's calls of device
// functions only when it compiles for the device.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "gpu/crops/crop_kernels-inl.h"
#include "gpu/crops/decode_crops_cuda.h"
#include "gpu/crops/entropy_threads.h"
#include "gpu/crops/unpack_warps.h"

namespace stoker {

namespace decode {
namespace {

constexpr unsigned kWarp = kUnpackThreads, kWarps = kUnpackWarps;
constexpr unsigned kTileThreads = 128;
constexpr int64_t kMaxBlocksDown = 65535;

// How many blocks of the last kernel a multiprocessor of sm_90 has shared memory for: registers
// must not limit them. CUDA takes 1 KiB of each block's for itself.
constexpr unsigned kTileBlocks = 8;
static_assert(kTileBlocks * (sizeof(TileMemory) + 1024) <= 228 * 1024);

__device__ const QuadTable kQuadTable = MakeQuadTable();
__device__ const CoefficientOrder kOrder = MakeCoefficientOrder();

struct WarpTeam {
  template <typename F>
  __device__ void EachUnawaited(const F& f) const {
    f(threadIdx.x % kWarp);
  }
  template <typename F>
  __device__ void Each(const F& f) const {
    EachUnawaited(f);
    __syncwarp();
  }
};

template <unsigned kThreads>
struct BlockTeam {
  __device__ uint32_t size() const { return kThreads; }
  template <typename F>
  __device__ void EachUnawaited(const F& f) const {
    f(threadIdx.x);
  }
  template <typename F>
  __device__ void Each(const F& f) const {
    EachUnawaited(f);
    __syncthreads();
  }
};

// Blocks: in x across the runs, intervals or tiles of a crop; in y and z down the rows of the
// batch.
__device__ uint32_t RowOfBlocks() { return blockIdx.z * gridDim.y + blockIdx.y; }

template <class Team>
__global__ void __launch_bounds__(kWarp* kWarps)
    UnpackKernel(const __grid_constant__ CropBatch batch) {
  __shared__ UnpackMemory memory[kWarps];
  const uint32_t warp = threadIdx.x / kWarp;
  UnpackCrop(Team(), batch, RowOfBlocks(), blockIdx.x * kWarps + warp, kQuadTable.data(),
             memory[warp]);
}

template <class Team>
__global__ void __launch_bounds__(kEntropyThreads)
    EntropyKernel(const __grid_constant__ CropBatch batch) {
  __shared__ EntropyMemory memory;
  DecodeCrop(Team(), batch, RowOfBlocks(), blockIdx.x * kEntropyThreads, kOrder.data(), memory);
}

template <class Team>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    ResampleKernel(const __grid_constant__ CropBatch batch) {
  __shared__ TileMemory memory;
  ResampleCrop(Team(), batch, RowOfBlocks(), blockIdx.x, memory);
}

using Kernel = void (*)(CropBatch);
constexpr Kernel kUnpack = UnpackKernel<WarpTeam>;
constexpr Kernel kEntropy = EntropyKernel<BlockTeam<kEntropyThreads>>;
constexpr Kernel kResample = ResampleKernel<BlockTeam<kTileThreads>>;

cudaError_t LoadAll() {
  for (const Kernel kernel : {kUnpack, kEntropy, kResample}) {
    cudaFuncAttributes unused;
    const cudaError_t error = cudaFuncGetAttributes(&unused, kernel);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// `each`: runs, intervals or tiles that a block takes; of `most`, those of a crop.
cudaError_t Launch(Kernel kernel, uint32_t most, uint32_t each, unsigned threads, CropBatch batch,
                   cudaStream_t stream) {
  if (most == 0 || batch.rows == 0) return cudaSuccess;
  const uint32_t blocks = (most - 1) / each + 1;
  const int64_t down = std::min<int64_t>(batch.rows, kMaxBlocksDown);
  const dim3 grid(blocks, static_cast<unsigned>(down),
                  static_cast<unsigned>((batch.rows - 1) / down + 1));
  void* arguments[] = {&batch};
  return cudaLaunchKernel(kernel, grid, dim3(threads), arguments, 0, stream);
}

// Returns the error and clears the runtime's last one, so that no other caller sees it.
int Forgotten(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

cudaError_t LaunchAll(const CropBatch& batch, cudaStream_t stream) {
  cudaError_t error = Launch(kUnpack, batch.most_runs, kWarps, kWarp * kWarps, batch, stream);
  if (error != cudaSuccess) return error;
  error = Launch(kEntropy, batch.most_intervals, kEntropyThreads, kEntropyThreads, batch, stream);
  if (error != cudaSuccess) return error;
  return Launch(kResample, batch.most_tiles, 1, kTileThreads, batch, stream);
}

}  // namespace
}  // namespace decode

int LoadDecodeCrops() { return decode::Forgotten(decode::LoadAll()); }

int LaunchDecodeCrops(const decode::CropBatch& batch, void* stream) {
  return decode::Forgotten(decode::LaunchAll(batch, static_cast<cudaStream_t>(stream)));
}

}  // namespace stoker
