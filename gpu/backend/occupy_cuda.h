// A kernel that only takes time, for measuring other work during it.
#pragma once

#include <cstdint>

namespace stoker {

// Issues the kernel on a stream (a cudaStream_t) of the current device and does not wait. Returns a
// cudaError_t.
int LaunchOccupy(uint64_t nanoseconds, void* stream);

}  // namespace stoker
