// Makes a source of samples in memory: NumPy arrays, tables, or any other arrays of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/batch/dtype.h"
#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Rows in memory, one for each sample. Owns nothing. Each row is dense and in C order; no alignment
// is required. Rows of strings (DType::kString, kBytes) are std::string_views.
struct ArrayColumn {
  std::string name;  // "image", "label"
  DType dtype = DType::kU8;
  std::vector<int64_t> row_shape;  // of one sample; {} for a scalar
  const void* data = nullptr;      // row 0
  uint64_t samples = 0;            // rows
  // Bytes from one row to the next; may be negative or 0. nullopt: the rows are contiguous.
  std::optional<int64_t> row_stride{};
  // Fields of objects only (io/source/field.h): those of sample i are the rows [offsets[i],
  // offsets[i + 1]) of `data`, which are contiguous. `samples` + 1 numbers. Of a drawn field,
  // `data` has shapes, and the offsets count their 32-bit words. Null for other fields, whose kind
  // is kFixed.
  const int64_t* offsets = nullptr;
  Field::Kind kind = Field::Kind::kFixed;
  BoxFormat box_format = BoxFormat::kXyxy;  // this and the following: as of Field
  bool normalized = false;
  std::vector<uint16_t> flip_pairs{};
  uint16_t fill = 0;
  std::optional<uint16_t> crowd{};

  size_t row_bytes() const { return BytesOf(dtype, row_shape); }
  // Precondition: id < samples, and there are no offsets.
  const uint8_t* Row(uint64_t id) const {
    const int64_t stride = row_stride ? *row_stride : static_cast<int64_t>(row_bytes());
    return static_cast<const uint8_t*>(data) + static_cast<int64_t>(id) * stride;
  }
};

// One or two columns with the same number of samples become the fields of the samples and a batch's
// columns, in this order and with these names; transforms apply to the first one, the image, and
// the second one, if it is not of objects, is the label. Any element type and row shape.
// Nothing is copied before it is put into a batch.
//
// The memory is the caller's. `owner`, which may be null, keeps it valid: the source releases it on
// its own destruction, on any thread. Rows must not change while a loader reads them.
//
// InvalidArgument names the column and the problem: no column or more than two, no name or the same
// one twice, no samples or different numbers of them, no data, a dimension that is not positive,
// more than seven dimensions, rows of 2^42 bytes or more.
Result<std::shared_ptr<const SampleSource>> Arrays(std::vector<ArrayColumn> columns,
                                                   std::shared_ptr<void> owner);

}  // namespace stoker
