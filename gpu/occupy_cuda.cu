#include <cuda_runtime_api.h>

#include "gpu/occupy_cuda.h"

namespace stoker {

namespace {

__device__ uint64_t Now() {
  uint64_t nanoseconds = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

__global__ void OccupyKernel(uint64_t nanoseconds) {
  const uint64_t begin = Now();
  while (Now() - begin < nanoseconds) __nanosleep(500);
}

}  // namespace

int LaunchOccupy(uint64_t nanoseconds, void* stream) {
  void* arguments[] = {&nanoseconds};
  const cudaError_t error =
      cudaLaunchKernel(reinterpret_cast<const void*>(&OccupyKernel), dim3(1), dim3(1), arguments, 0,
                       static_cast<cudaStream_t>(stream));
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

}  // namespace stoker
