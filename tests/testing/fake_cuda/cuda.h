// What gpu/ uses of CUDA's driver: types. The functions are asked from the runtime.
#pragma once

enum CUresult : int { CUDA_SUCCESS = 0 };  // others have the numbers of cudaError_t
using CUdevice = int;
using CUcontext = struct CUctx_st*;
using CUevent = struct CUevent_st*;
