// RefusedMemory: makes the system refuse memory, in a program that is linked with
// refused_memory.cc, which replaces mmap.
#pragma once

#include <cstdint>

namespace stoker::testing {

// During its lifetime, the last one of each `each` mappings without a file that have at least
// `smallest` bytes is refused with ENOMEM. One at a time.
class RefusedMemory {
 public:
  explicit RefusedMemory(uint64_t each, uint64_t smallest = 0);
  ~RefusedMemory();
  RefusedMemory(const RefusedMemory&) = delete;
  RefusedMemory& operator=(const RefusedMemory&) = delete;

  uint64_t refused() const;  // mappings so far
};

}  // namespace stoker::testing
