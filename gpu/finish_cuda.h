// The kernel, as finish_cuda.cu has it: for device_cuda.cc, where CUDA is.
#pragma once

#include "gpu/finish.h"

namespace stoker {

// Loads every variant of the kernel for the current device: a kernel that is loaded when it is
// first launched may have to wait for all that the device does. A cudaError_t.
int LoadFinish();

// Issues the job on a stream (a cudaStream_t) of the current device; does not wait. What comes back
// is a cudaError_t: whether it was issued, and nothing of earlier work.
int LaunchFinish(const FinishJob& job, void* stream);

}  // namespace stoker
