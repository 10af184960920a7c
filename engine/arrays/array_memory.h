// ArrayMemory: memory for arrays that is given back when they die.
#pragma once

#include <cstddef>
#include <memory>

#include "core/result.h"

namespace stoker {

// malloc keeps what threads have freed for as long as anything behind it lives, so larger arrays
// have mappings of their own. A few of those that died last are kept for the next arrays, because a
// page's first use takes as long as decoding half of its pixels. Thread-safe.
class ArrayMemory {
 public:
  static constexpr size_t kKeptBytes = size_t{64} << 20;  // at most, of arrays that have died

  ArrayMemory();
  ~ArrayMemory();

  // Uninitialised, 64-byte aligned, for one holder at a time. May be released on any thread, also
  // after the ArrayMemory has gone. ResourceExhausted if the system has no memory.
  Result<std::shared_ptr<void>> Allocate(size_t bytes);

 private:
  class Kept;
  std::shared_ptr<Kept> kept_;
};

}  // namespace stoker
