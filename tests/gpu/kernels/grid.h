// The threads of a CUDA kernel on one thread of the CPU, and what CUDA calls a thread's own.
//
// Each thread of a block is a fiber. They take turns in an order that is drawn at random, and the
// same in each run: a thread goes on until it ends or comes to a function of its warp or its block
// below.
//
// Not simulated: the memory model (a thread's writes are seen at once, in order), the device's own
// arithmetic, and all else that no kernel here uses.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "tests/gpu/kernels/cuda_attributes.h"

struct dim3 {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  unsigned x, y, z;
};
struct uint3 {
  unsigned x, y, z;
};
extern __device__ uint3 threadIdx, blockIdx;
extern __device__ dim3 blockDim, gridDim;

// The threads of the warp that are told the same at once: as on a GPU, any of those that have come
// here, and not always all.
__device__ unsigned __activemask();
// Ends the program unless all threads of the warp come here.
__device__ void __syncwarp();
// Ends the program unless all threads of the block come here.
__device__ void __syncthreads();
__device__ void __nanosleep(unsigned nanoseconds);

namespace stoker::testing {

// Runs all threads. False if CUDA refuses so many blocks or threads.
bool RunGrid(const void* kernel, dim3 blocks, dim3 threads, const std::function<void()>& thread);
void LoadKernel(const void* kernel);

// So far, in this process.
const std::set<const void*>& LoadedKernels();
const std::set<const void*>& LaunchedKernels();

// Nanoseconds. A look at it takes one, and __nanosleep what it is given; nothing else takes time.
__device__ uint64_t GridClock();

}  // namespace stoker::testing
