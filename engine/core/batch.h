// Batch: rows of samples, lent to whoever consumes them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/dtype.h"

namespace stoker {

class SlotPool;
struct Slot;

// One tensor of a batch: C order, dense, rows first. `data` is 64-byte aligned and writable; it
// belongs to the slot that the batch leases.
struct Column {
  std::string name;  // "image", "label"
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;  // image: {rows, height, width, 3}; label: {rows}
  void* data = nullptr;

  template <typename T>
  std::span<T> as() const {
    size_t n = 1;
    for (int64_t d : shape) n *= static_cast<size_t>(d);
    return {static_cast<T*>(data), n};
  }
};

// A lease on a slot, move-only. The memory is valid until the batch is destroyed or released, also
// after the loader has gone. Each batch may be used and released on any one thread at a time.
//
// A default-constructed batch is empty and converts to false: Loader::Next() returns it to say that
// the epoch has ended.
class Batch {
 public:
  Batch() = default;
  Batch(std::shared_ptr<SlotPool> pool, Slot* slot) : pool_(std::move(pool)), slot_(slot) {}
  Batch(Batch&& other) noexcept;
  Batch& operator=(Batch&& other) noexcept;
  ~Batch() { Release(); }

  explicit operator bool() const { return slot_ != nullptr; }

  // Preconditions of all below: the batch is not empty.
  std::span<const Column> columns() const;
  const Column& images() const { return columns()[0]; }
  const Column& labels() const { return columns()[1]; }
  std::span<const uint64_t> sample_ids() const;  // which sample of the source each row is
  int64_t rows() const;                          // valid rows = shape[0] of every column
  uint64_t epoch() const;
  uint64_t index() const;  // of this batch in its epoch, from 0

  // Gives the slot back; the batch is then empty. Does nothing to an empty batch.
  void Release();

 private:
  std::shared_ptr<SlotPool> pool_;
  Slot* slot_ = nullptr;
};

}  // namespace stoker
