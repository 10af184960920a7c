// Converts CUDA's error codes to stoker's errors. A code is a cudaError_t or a CUresult, which have
// the same numbers.
#pragma once

#include <string>

#include "core/result/result.h"

namespace stoker {

// Returns the error of a code; 0 is success. ResourceExhausted if memory is missing;
// FailedPrecondition if CUDA has shut down (the process ends) or a stream is being captured;
// otherwise Unavailable. The text is like "cudaMalloc on cuda:0: out of memory
// (cudaErrorMemoryAllocation)". Clears the runtime's last error of this thread.
Status CudaStatus(int error, const char* call, const std::string& device);

// Versions of CUDA: major × 1000 + minor × 10.
int CudaBuiltWith();
int MinCudaOfDriver();  // for any minor version: they are compatible with each other
int CudaOfDriver();     // 0 without a driver. Loads the driver if there is one.

// Returns the number of devices, at least 1; otherwise FailedPrecondition with the reason and
// advice. Loads the driver; creates no context.
Result<int> CountCudaDevices();

}  // namespace stoker
