// ColumnSpec: the name, type and row shape of a column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace stoker {

// Describes one row of a column.
struct ColumnSpec {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> row_shape;  // without the batch dimension; {} for a scalar

  size_t row_bytes() const;
};

}  // namespace stoker
