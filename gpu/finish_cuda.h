// The kernel, as finish_cuda.cu has it: for device_cuda.cc, where CUDA is.
#pragma once

#include "gpu/finish.h"

namespace stoker {

// Issues the job on a stream (a cudaStream_t) of the current device; does not wait. What comes back
// is a cudaError_t: whether it was issued, and nothing of earlier work.
int LaunchFinish(const FinishJob& job, void* stream);

}  // namespace stoker
