// Counts the memory that this process holds at its allocation: by malloc and related functions, and
// by mmap. For a program linked with counted_memory.cc, which replaces them.
#pragma once

#include <cstdint>

namespace stoker::testing {

int64_t HeldBytes();
int64_t PeakBytes();  // since the last ResetPeak
void ResetPeak();

}  // namespace stoker::testing
