// What this process holds, counted where it is taken: by malloc and its kin, and by mmap. For a
// program that is linked with counted_memory.cc, which replaces them.
#pragma once

#include <cstdint>

namespace stoker::testing {

int64_t HeldBytes();
int64_t PeakBytes();  // since the last ResetPeak
void ResetPeak();

}  // namespace stoker::testing
