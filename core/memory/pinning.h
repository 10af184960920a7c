// Pinning: page-locked host memory, which a device can read without the CPU.
#pragma once

#include <cstddef>

#include "core/result/result.h"

namespace stoker {

// Thread-safe. The owner of pinned memory keeps the Pinning alive until the memory is unpinned.
class Pinning {
 public:
  virtual ~Pinning() = default;

  // Locks [data, data + bytes), page-aligned, in physical memory. Slow, since every page is
  // touched. ResourceExhausted, Unavailable; FailedPrecondition if this process may not use the
  // device.
  virtual Status Pin(void* data, size_t bytes) = 0;

  // The NUMA node to allocate the memory on; -1 means any.
  virtual int numa_node() const { return -1; }

  // Called before the memory is freed. Cannot fail, even if the device has gone.
  virtual void Unpin(void* data) = 0;

  // Returns page-aligned memory that is pinned from the start, for systems where other memory
  // cannot be. ResourceExhausted, Unavailable.
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* data) = 0;  // as Unpin
};

}  // namespace stoker
