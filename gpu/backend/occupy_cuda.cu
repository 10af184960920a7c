#include <cuda_runtime_api.h>

#include <cuda/ptx>

#include "gpu/backend/occupy_cuda.h"

namespace stoker {

namespace {

__global__ void OccupyKernel(uint64_t nanoseconds) {
  const uint64_t begin = cuda::ptx::get_sreg_globaltimer();
  while (cuda::ptx::get_sreg_globaltimer() - begin < nanoseconds) __nanosleep(500);
}

}  // namespace

int LaunchOccupy(uint64_t nanoseconds, void* stream) {
  void* arguments[] = {&nanoseconds};
  const cudaError_t error = cudaLaunchKernel(&OccupyKernel, dim3(1), dim3(1), arguments, 0,
                                             static_cast<cudaStream_t>(stream));
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

}  // namespace stoker
