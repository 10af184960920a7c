// Memory that grows to the largest content it has held, within the budget: file bytes on their way
// to a worker, and the pixels that a worker keeps while it resizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory/mapping.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"

namespace stoker {

// Bytes that may be read (not written) beyond the requested size, so that SIMD loads and bit
// readers need no tail loop. Their content is unspecified.
inline constexpr size_t kBufferPadding = 64;

// 4096-byte aligned. Move-only; used by one thread at a time.
class GrowingBuffer {
 public:
  GrowingBuffer() = default;  // holds nothing and cannot grow
  explicit GrowingBuffer(MemoryBudget& budget) : reserved_(budget) {}

  // Makes room for `bytes` (and kBufferPadding after them); never shrinks. The content is lost
  // unless `keep` says how many of the first bytes to carry over. Returns ResourceExhausted, with
  // wanted_bytes, when the budget or the system has no room; the buffer is then unchanged if `keep`
  // > 0, otherwise empty.
  Status Grow(size_t bytes, size_t keep = 0);

  // Returns the memory to the system and its bytes to the budget.
  void Free();

  // Moves the memory and its bytes of the budget to the returned buffer; this one is then empty,
  // and can grow again.
  GrowingBuffer HandOver();

  // Returns the bytes to the budget, but keeps the memory from the system for as long as the
  // process runs: the kernel may still write to it.
  void Forget();

  // Returns the bytes of the budget that an empty buffer takes when it grows to `bytes`.
  static uint64_t MappedBytes(size_t bytes);

  uint8_t* data() const { return memory_.data(); }
  size_t capacity() const {  // bytes, padding not counted
    return memory_.size() == 0 ? 0 : memory_.size() - kBufferPadding;
  }

 private:
  Reservation reserved_;
  Mapping memory_;
};

// Grows several buffers that are needed together. If one does not fit, the error's wanted_bytes
// cover all that are missing.
struct Growth {
  GrowingBuffer& buffer;
  size_t bytes;
};
Status GrowAll(std::span<const Growth> growths);
uint64_t MissingBytes(std::span<const Growth> growths);  // summed over the buffers that are smaller

}  // namespace stoker
