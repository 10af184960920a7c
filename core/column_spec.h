// ColumnSpec: a column before it has rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace stoker {

// What one row of a column is.
struct ColumnSpec {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> row_shape;  // without the batch dimension; {} for a scalar

  size_t row_bytes() const;
};

}  // namespace stoker
