// ColumnOfObjects: describes the values of a source's objects as one of its columns.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/batch/dtype.h"
#include "io/memory/arrays.h"

namespace stoker {

// Returns the column of values that each object has: those of sample i are the rows [offsets[i],
// offsets[i + 1]) of `data`. A box has a row of 4 numbers, any other value is a scalar. `data` and
// `offsets` must live as long as the column is used.
inline ArrayColumn ColumnOfObjects(const char* name, DType dtype, const void* data,
                                   const std::vector<int64_t>& offsets,
                                   Field::Kind kind = Field::Kind::kObject) {
  std::vector<int64_t> row_shape(kind == Field::Kind::kBoxes ? 1 : 0, 4);
  return {.name = name,
          .dtype = dtype,
          .row_shape = std::move(row_shape),
          .data = data,
          .samples = offsets.size() - 1,
          .offsets = offsets.data(),
          .kind = kind};
}

}  // namespace stoker
