// MemoryColumns: fields of samples whose rows are in the program's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/memory/arrays.h"
#include "io/source/field.h"

namespace stoker {

// Immutable. `column` is an index into columns().
class MemoryColumns {
 public:
  MemoryColumns() = default;  // no columns

  // Takes any number of columns, described as for Arrays(), and their owner. Errors: those of
  // Arrays().
  static Result<MemoryColumns> Make(std::vector<ArrayColumn> columns, std::shared_ptr<void> owner);

  // Each has a stride. The offsets of objects are copies.
  const std::vector<ArrayColumn>& columns() const { return columns_; }

  // CopyRows does what SampleSource::FixedRows does, and View what SampleSource::View does.
  // max_objects likewise.
  void CopyRows(size_t column, std::span<const uint64_t> ids, void* rows) const;
  std::span<const uint8_t> View(size_t column, uint64_t id) const;
  uint32_t max_objects() const { return max_objects_; }

  // Hashes types, shapes and content. It hashes all of a column if there are few rows of few
  // bytes, if rows are strings, or if rows are single numbers and `all_numbers` is set; otherwise
  // parts of it. The hash does not depend on the rows' strides.
  uint64_t Hash(bool all_numbers, uint64_t seed = 0) const;

 private:
  std::vector<ArrayColumn> columns_;
  std::shared_ptr<void> owner_;
  // The offsets of fields of objects, equal ones once; columns_ points into them, also in copies.
  std::shared_ptr<const std::vector<std::vector<int64_t>>> offsets_;
  uint32_t max_objects_ = 0;
};

Field FieldOf(const ArrayColumn& column);

// Returns "label: 60000 × int64".
std::string DescribeColumn(const ArrayColumn& column);

// InvalidArgument if Make would refuse the column's name, type or row shape.
Status CheckRow(const ArrayColumn& column);

// Returns an error about a column.
Error RefuseColumn(const ArrayColumn& column, const std::string& cause, std::string advice = "");

}  // namespace stoker
