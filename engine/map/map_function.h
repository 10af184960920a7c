// MapFunction: a program's own function of rows or batches, which runs after the transforms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/map/row_random.h"

namespace stoker {

// One row of a batch that is being made. Its memory is the batch's own, and may be changed during
// the call of MapRow; it must not be used afterwards.
class MappedRow {
 public:
  // `columns`: the columns of `slot`. `position` and `seed` are those of random().
  MappedRow(std::span<const ColumnSpec> columns, const Slot& slot, uint32_t row, uint64_t position,
            uint64_t seed)
      : columns_(columns), slot_(slot), row_(row), position_(position), seed_(seed) {}

  // Names, types and shapes, of a ragged column those of one object, in the order of a batch's
  // columns. The first one is the image, in the type and layout of the loader. Rows of strings
  // (IsString) are string_views, which must not be changed.
  std::span<const ColumnSpec> columns() const { return columns_; }
  // The index of the first column with this name; nullopt if there is none.
  std::optional<size_t> column(std::string_view name) const;

  // The row of a column, dense and in C order, aligned for its type; of a ragged column the rows of
  // its objects, one after another.
  void* data(size_t column) const;
  // The number of objects of a ragged column, and 1 of another one.
  size_t objects(size_t column) const;
  template <typename T>
  std::span<T> as(size_t column) const {
    const size_t bytes = objects(column) * columns_[column].object_bytes();
    return {static_cast<T*>(data(column)), bytes / sizeof(T)};
  }

  uint64_t sample() const;  // its id in the source
  BatchName batch() const;
  uint32_t row() const { return row_; }  // in the batch
  // The position in the epoch's order, over all ranks.
  uint64_t position() const { return position_; }
  // A generator that begins with the same numbers in each call. They depend on the loader's seed,
  // the epoch and the position: not on threads, ranks or the batch size.
  RowRandom random() const { return {seed_, batch().epoch, position_}; }

 private:
  const std::span<const ColumnSpec> columns_;
  const Slot& slot_;
  const uint32_t row_;
  const uint64_t position_;
  const uint64_t seed_;
};

// A loader calls either MapRow or MapBatch, as calls() says, after the transforms and before a
// batch is delivered or copied to a device. The function may change values in place, and fills the
// columns() that it adds; types and shapes are fixed. Each row and batch is mapped once, unless its
// samples failed. Batches that were made ahead are mapped even if no consumer takes them. All
// member functions may be called on several threads at a time, and must not wait for their own
// loader.
//
// An error fails the batch; the name of the function and the sample or batch are added to its
// cause. An exception becomes an UNAVAILABLE error. Describe, InState, calls and columns are called
// when a loader is opened, and all but InState again for each further iteration that runs at the
// same time as others.
class MapFunction {
 public:
  virtual ~MapFunction() = default;

  // The function's name, for messages and reports: "to_gray".
  virtual std::string Describe() const = 0;

  // Identifies the function in a loader's state by its name, how it is called and the columns it
  // adds, so that a loader with another function refuses the state. Its code is not compared.
  virtual std::string InState() const;

  // The columns of numbers that the function adds to a batch, after all others. Their rows are
  // zeros when it is called. A column with the name of a column of strings replaces it (tokens
  // replace a caption); the strings move to a column of the same name after all others. If the
  // function adds a column, batches of images alone get no column of kNoLabel.
  virtual std::vector<ColumnSpec> columns() const { return {}; }

  // The number of threads that call MapBatch, 1 to 256; 0 means that MapRow is called.
  virtual int calls() const { return 0; }

  // Called on the threads that decode, when the row is complete and still in their caches; before
  // MixUp and CutMix. It should not block or allocate.
  virtual Status MapRow(const MappedRow& /*row*/) const { return {}; }

  // Called on dedicated threads, with a complete batch, after MixUp and CutMix; it may be slow.
  // Calls begin in the order of the batches, so that with one thread each ends before the next one
  // begins. (Concurrent iterations have their own threads.) The batch is lent for the call;
  // Batch::Owner keeps its memory longer, and shares it with the consumer.
  virtual Status MapBatch(const Batch& /*batch*/) const { return {}; }
};

}  // namespace stoker
