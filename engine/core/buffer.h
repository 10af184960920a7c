// Memory that grows to the largest thing it has held, inside the budget: file bytes on their way
// to a worker, and the pixels a worker keeps while it resizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/core/mapping.h"
#include "engine/core/memory_budget.h"
#include "engine/core/result.h"

namespace stoker {

// Bytes that may be read (not written) beyond what was asked for, so that SIMD loads and bit
// readers need no tail loop. Their content is unspecified.
inline constexpr size_t kBufferPadding = 64;

// 4096-byte aligned. Move-only; used by one thread at a time.
class GrowingBuffer {
 public:
  GrowingBuffer() = default;  // holds nothing and cannot grow
  explicit GrowingBuffer(MemoryBudget& budget) : reserved_(budget) {}

  // Makes room for `bytes` (and kBufferPadding behind them); never shrinks. The content is lost
  // unless `keep` says how many of the first bytes to carry over. ResourceExhausted when the budget
  // or the system has no room; the buffer is then unchanged if `keep` > 0, else empty.
  Status Grow(size_t bytes, size_t keep = 0);

  // Gives the memory back to the system and its bytes to the budget.
  void Free();

  uint8_t* data() const { return memory_.data(); }
  size_t capacity() const {  // bytes, padding not counted
    return memory_.size() == 0 ? 0 : memory_.size() - kBufferPadding;
  }

 private:
  Reservation reserved_;
  Mapping memory_;
};

}  // namespace stoker
