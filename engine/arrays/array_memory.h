// ArrayMemory: allocates memory for arrays, and returns it to the system when they are freed.
#pragma once

#include <cstddef>
#include <memory>

#include "core/result/result.h"

namespace stoker {

// malloc cannot return freed memory to the system while anything after it in the heap is in use,
// so larger arrays have mappings of their own. A few of the mappings freed last are kept for the
// next arrays, because the first use of a page takes as long as decoding half of its pixels.
// Thread-safe.
class ArrayMemory {
 public:
  static constexpr size_t kKeptBytes = size_t{64} << 20;  // limit on the freed memory that is kept

  ArrayMemory();
  ~ArrayMemory();

  // Allocates uninitialised, 64-byte aligned memory for one holder at a time. It may be released on
  // any thread, even after the ArrayMemory is destroyed. ResourceExhausted if the system has no
  // memory.
  Result<std::shared_ptr<void>> Allocate(size_t bytes);

 private:
  class Kept;
  std::shared_ptr<Kept> kept_;
};

}  // namespace stoker
