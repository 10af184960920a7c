// Pinning: host memory that a device reads by itself, while the CPU does something else.
#pragma once

#include <cstddef>

#include "core/result.h"

namespace stoker {

// Any thread. Whoever pins memory keeps this alive until it is unpinned.
class Pinning {
 public:
  virtual ~Pinning() = default;

  // [data, data + bytes) stays where it is from now on, and can be copied from without the CPU.
  // Page-aligned. Takes a while: every page is touched. ResourceExhausted, Unavailable.
  virtual Status Pin(void* data, size_t bytes) = 0;

  // NUMA node that the memory should lie on; -1: any.
  virtual int numa_node() const { return -1; }

  // Before the memory is given back. Cannot fail: also where the device has gone meanwhile.
  virtual void Unpin(void* data) = 0;
};

}  // namespace stoker
