// Counts what the program it is linked into allocates by `new`, on all threads.
#pragma once

#include <cstdint>

namespace stoker::testing {

uint64_t AllocationsSoFar();

}  // namespace stoker::testing
