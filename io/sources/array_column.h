// ArrayColumn: rows in memory, one for each sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace stoker {

// Owns nothing. Each row is dense and in C order; no alignment is required.
struct ArrayColumn {
  std::string name;  // "image", "label"
  DType dtype = DType::kU8;
  std::vector<int64_t> row_shape;  // of one sample; {} for a scalar
  const void* data = nullptr;      // row 0
  uint64_t samples = 0;            // rows
  // Bytes from one row to the next; may be negative or 0. nullopt: the rows are contiguous.
  std::optional<int64_t> row_stride{};

  size_t row_bytes() const {
    size_t bytes = SizeOf(dtype);
    for (int64_t d : row_shape) bytes *= static_cast<size_t>(d);
    return bytes;
  }
  // Precondition: id < samples.
  const uint8_t* Row(uint64_t id) const {
    const int64_t stride = row_stride ? *row_stride : static_cast<int64_t>(row_bytes());
    return static_cast<const uint8_t*>(data) + static_cast<int64_t>(id) * stride;
  }
};

}  // namespace stoker
