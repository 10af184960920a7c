// The kernels in decode_crops_cuda.cu.
#pragma once

#include "core/batch/device_crop.h"

namespace stoker {

// Loads the kernels for the current device, as LoadDeferredOps (gpu/ops/deferred_ops_cuda.h) does.
// Returns a cudaError_t.
int LoadDecodeCrops();

// Issues the batch on a stream (a cudaStream_t) of the current device and does not wait. Pointers
// are the device's. Returns a cudaError_t that says whether the batch was issued.
int LaunchDecodeCrops(const decode::CropBatch& batch, void* stream);

}  // namespace stoker
