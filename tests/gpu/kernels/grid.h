// The threads of a CUDA kernel on one thread of the CPU, and what CUDA calls a thread's own.
//
// Each thread of a block is a fiber. They take turns in an order that is drawn at random, and the
// same in each run: a thread goes on until it ends or comes to a function of its warp below.
//
// Not simulated: the memory model (a thread's writes are seen at once, in order), the device's own
// arithmetic, __syncthreads and all else that no kernel here uses.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

// The threads of the warp that are told the same at once: as on a GPU, any of those that have come
// here, and not always all.
unsigned __activemask();
// Ends the program unless all threads of the warp come here.
void __syncwarp();
void __nanosleep(unsigned nanoseconds);

namespace stoker::testing {

// Runs all threads. False if CUDA refuses so many blocks or threads.
bool RunGrid(const void* kernel, dim3 blocks, dim3 threads, const std::function<void()>& thread);
void LoadKernel(const void* kernel);

// So far, in this process.
const std::set<const void*>& LoadedKernels();
const std::set<const void*>& LaunchedKernels();

// Nanoseconds. A look at it takes one, and __nanosleep what it is given; nothing else takes time.
uint64_t GridClock();

}  // namespace stoker::testing
