// A kernel that does nothing for a while: for measuring work beside it.
#pragma once

#include <cstdint>

namespace stoker {

// Issues it on a stream (a cudaStream_t) of the current device and does not wait. Returns a
// cudaError_t.
int LaunchOccupy(uint64_t nanoseconds, void* stream);

}  // namespace stoker
