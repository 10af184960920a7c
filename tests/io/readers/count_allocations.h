// Counts what the program with which it is linked allocates by `new`, on all threads.
#pragma once

#include <cstdint>

namespace stoker::testing {

uint64_t AllocationsSoFar();

}  // namespace stoker::testing
