// A kernel that does nothing for a while: for measuring what goes on beside one.
#pragma once

#include <cstdint>

namespace stoker {

// Issues it on a stream (a cudaStream_t) of the current device; does not wait. A cudaError_t.
int LaunchOccupy(uint64_t nanoseconds, void* stream);

}  // namespace stoker
