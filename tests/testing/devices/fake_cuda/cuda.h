// The types of CUDA's driver that gpu/ uses. Its functions are looked up through the runtime.
#pragma once

enum CUresult : int { CUDA_SUCCESS = 0 };  // other values are those of cudaError_t
using CUdevice = int;
using CUcontext = struct CUctx_st*;
using CUevent = struct CUevent_st*;
