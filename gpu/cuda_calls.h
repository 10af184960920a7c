// What CUDA's runtime answers, in stoker's words. Errors are cudaError_t, and CUresult, which has
// the same numbers.
#pragma once

#include <string>

#include "core/result.h"

namespace stoker {

// 0: success. ResourceExhausted where memory is missing; FailedPrecondition where CUDA has gone
// (the process ends) or a stream is being captured; else Unavailable. "cudaMalloc on cuda:0: out of
// memory (cudaErrorMemoryAllocation)". What the runtime remembers of it for this thread is cleared.
Status CudaStatus(int error, const char* call, const std::string& device);

// Versions of CUDA: major × 1000 + minor × 10.
int CudaBuiltWith();
int LeastCudaOfDriver();  // of any minor version: they are compatible with each other
int CudaOfDriver();       // 0: there is no driver. Loads it, where there is one.

// At least 1; else FailedPrecondition says why there is none, and what to do. Loads the driver;
// joins no context.
Result<int> CountCudaDevices();

}  // namespace stoker
