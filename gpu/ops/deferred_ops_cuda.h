// The kernel in deferred_ops_cuda.cu, for device_cuda.cc.
#pragma once

#include "gpu/ops/deferred_ops_job.h"

namespace stoker {

// Loads every variant of the kernel for the current device, because loading a kernel at its first
// launch may wait for all work of the device. Returns a cudaError_t.
int LoadDeferredOps();

// Issues the job on a stream (a cudaStream_t) of the current device and does not wait. Returns a
// cudaError_t that says whether the job was issued, not the result of earlier work.
int LaunchDeferredOps(const DeferredOpsJob& job, void* stream);

}  // namespace stoker
