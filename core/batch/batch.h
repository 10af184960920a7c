// Batch: rows of samples, lent to the consumer. BatchName and Column describe it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/dtype.h"

namespace stoker {

class CropRegion;
struct Slot;

// Identifies a batch: with the same options, the same name always gives the same bytes.
struct BatchName {
  uint64_t epoch = 0;
  uint64_t index = 0;  // in its epoch
  // The place of batch 0 in the epoch: a position of its order or, with batch_tokens, a batch of
  // all ranks. Not 0 if other ranks, or batches of another size, have begun the epoch.
  uint64_t start = 0;
  friend bool operator==(const BatchName&, const BatchName&) = default;
};

// Names a batch in messages: "batch 3 of epoch 1", or "batch 3 of what was left of epoch 1 from
// position 14".
std::string TextOf(const BatchName& batch);

// Describes one row of a column.
struct ColumnSpec {
  std::string name;
  DType dtype = DType::kU8;
  // Without the batch dimension; {} for a scalar. Of a ragged column: of one object.
  std::vector<int64_t> row_shape;
  bool owns_strings = false;  // strings are the batch's own, not the source's
  // The most objects that a row of a ragged column has; 0 means that the column is dense.
  uint32_t max_objects = 0;
  // The objects that all rows of a batch have together, at most, if their numbers are known when it
  // is opened; 0 means that each row has room for max_objects. In a ragged column, at most one,
  // each row has a place of its own size (Slot::starts). In a dense one the objects are the first
  // dimension of row_shape, and all rows of a batch have the same number (Slot::SetLongest), at
  // most that one.
  uint64_t room = 0;
  // The dimension of row_shape that is a height, followed by a width, if each batch has its own:
  // row_shape then has the most, and those of the batch are in Column::shape.
  std::optional<size_t> height_at{};
  size_t staged_bytes = 0;  // reserved after those of row_shape, while a batch is made

  bool is_ragged() const { return max_objects != 0; }
  bool is_padded() const { return room != 0 && !is_ragged(); }
  size_t object_bytes() const {  // of a ragged or a padded column
    return BytesOf(dtype, std::span(row_shape).subspan(is_padded() ? 1 : 0));
  }
  // The bytes reserved for a row, at most.
  size_t row_bytes() const {
    return BytesOf(dtype, row_shape) * (is_ragged() ? max_objects : 1) + staged_bytes;
  }
};

// One tensor of a batch: C order, dense, rows first. `data` is 64-byte aligned and writable; it
// stays at this address, and valid, until the batch and all Owners of the column are gone.
//
// A ragged column has the objects of all rows, one row after another: those of row r are
// [offsets[r], offsets[r + 1]), and there may be none. `offsets` is as valid as `data`.
//
// Strings (IsString) are views of the source's memory, and valid as long as the source; those of
// kLoaded fields are the column's own, and valid as long as its data. The source's are host
// addresses even in a DeviceBatch; SampleSource::FixedRows returns them by sample id.
struct Column {
  std::string name;  // "image", "label"
  DType dtype = DType::kU8;
  // image: {rows, height, width, 3} or {rows, 3, …}; label: {rows}; ragged boxes: {objects, 4}
  std::vector<int64_t> shape;
  void* data = nullptr;
  int64_t* offsets = nullptr;  // rows + 1, from 0 to shape[0]; null for a dense column

  size_t values() const {
    size_t n = 1;
    for (int64_t d : shape) n *= static_cast<size_t>(d);
    return n;
  }
  size_t bytes() const { return values() * SizeOf(dtype); }

  template <typename T>
  std::span<T> as() const {
    return {static_cast<T*>(data), values()};
  }

  // The values of the objects of a row. Precondition: the column is ragged.
  template <typename T>
  std::span<T> objects(int64_t row) const {
    const size_t each = shape[0] == 0 ? 0 : values() / static_cast<size_t>(shape[0]);
    return as<T>().subspan(static_cast<size_t>(offsets[row]) * each,
                           static_cast<size_t>(offsets[row + 1] - offsets[row]) * each);
  }
};

// Returns the first of the columns with this name; null if there is none.
const Column* FindColumn(std::span<const Column> columns, std::string_view name);

// A lease on a slot, move-only. The memory is valid until the batch is destroyed or released, also
// after the loader has gone. Each batch may be used and released on any one thread at a time.
//
// Large columns lie in the slot; small ones, such as labels, have memory of their own (see
// SlotPool::IsSmall), so that keeping labels does not keep images.
//
// A default-constructed batch is empty and converts to false: Iterator::Next() returns it at the
// end of the epoch.
class Batch {
 public:
  Batch() = default;
  explicit Batch(std::shared_ptr<Slot> lease) : slot_(std::move(lease)) {}
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&&) noexcept = default;

  explicit operator bool() const { return slot_ != nullptr; }

  // Preconditions of all functions below: the batch is not empty; for labels() it also has a second
  // column. (If the source has no labels, the second column is another field, the images' sizes, or
  // another view of the images; if samples have several encoded images, it is the second of them:
  // see SampleSource::label().)
  std::span<const Column> columns() const;
  const Column& images() const { return columns()[0]; }
  const Column& labels() const { return columns()[1]; }
  // The column with this name; null if there is none. Its index is its distance from the first one.
  const Column* column(std::string_view name) const { return FindColumn(columns(), name); }
  std::span<const uint64_t> sample_ids() const;  // the sample of the source in each row
  int64_t rows() const;                          // valid rows = shape[0] of every dense column
  BatchName name() const;
  uint64_t epoch() const { return name().epoch; }
  uint64_t index() const { return name().index; }  // of this batch in its epoch, from 0
  // The position of its first sample (Sampler::PositionOf), over all ranks. With the epoch it is
  // a key for random numbers that do not depend on threads. Rows that were dropped count.
  uint64_t position() const;
  bool pinned(size_t column) const;           // the column's memory (LoaderOptions::pinned_for)
  std::span<const CropRegion> crops() const;  // by device; empty unless devices decode

  // Keeps this one column's memory valid, also after the batch and the loader have gone. A column
  // in the slot keeps the slot leased; a small one keeps only itself. May be copied, and released
  // on any thread.
  std::shared_ptr<void> Owner(size_t column) const;

  // Another lease on the same slot, which returns to its pool when both have been released.
  // Different threads may hold them.
  Batch Share() const { return Batch(slot_); }

  // Returns the slot, unless an Owner still needs it; the batch is then empty. Does nothing to an
  // empty batch.
  void Release() { slot_.reset(); }

 private:
  std::shared_ptr<Slot>
      slot_;  // the lease: when the last copy is destroyed the slot returns to its pool
};

// Lets a caller interrupt a wait. A waiting call invokes it about every kInterruptInterval, on its
// own thread; true ends the wait with Cancelled. Nothing is lost: the next call delivers the batch
// that this one would have delivered. An empty function is never invoked.
using Interrupt = std::function<bool()>;

inline constexpr std::chrono::milliseconds kInterruptInterval{50};

}  // namespace stoker
