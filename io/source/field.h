// Field: a value that each sample of a source has, under one name. A batch has a column of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/batch/dtype.h"

namespace stoker {

struct Field {
  enum class Kind : uint8_t {
    kImage,   // an encoded image, to be decoded and transformed
    kMask,    // an encoded image of one channel whose values are classes or instances: transforms
              // move its pixels as they move the image's, and never blend or change a value
    kFixed,   // a row in memory, of one type and shape for all samples
    kLoaded,  // such a row, set by SampleSource::Load or Unpack with the image; for strings by
              // Unpack only, as views of the record
  };

  std::string name;  // unique among the fields: "image", "label"
  Kind kind = Kind::kFixed;
  DType dtype = DType::kU8;          // of a row
  std::vector<int64_t> row_shape{};  // of a row; {} for a scalar
  bool is_label = false;             // whether it is the label to train with; at most one field is
  uint8_t fill = 0;                  // of a kMask: the value of pixels outside the image

  // Whether samples have an encoded image of it.
  bool is_encoded() const { return kind == Kind::kImage || kind == Kind::kMask; }

  // Precondition of all functions below: not is_encoded().
  size_t row_bytes() const { return BytesOf(dtype, row_shape); }
  // Whether a row is the number of a class: a single integer, or a bool, which is 0 or 1.
  bool is_class_number() const {
    return dtype >= DType::kBool && dtype <= DType::kI64 && row_bytes() == SizeOf(dtype);
  }
  // The number in a row; INT64_MAX if it is larger. Precondition: is_class_number().
  int64_t ClassNumberIn(const void* row) const;
};

// Returns the bytes of the field's row that comes with the image; 0 for other kinds.
inline size_t LoadedBytes(const Field& field) {
  return field.kind == Field::Kind::kLoaded ? field.row_bytes() : 0;
}

// Returns the bytes of all rows that come with an image.
size_t LoadedBytes(std::span<const Field> fields);

// Returns the fields of encoded images: "image" and, if they have labels, "label" (int64).
std::span<const Field> ImageFields(bool labels);

// Returns the type and shape of a row: "uint8 (28, 28)", "int64".
std::string DescribeRow(DType dtype, std::span<const int64_t> row_shape);
inline std::string DescribeRow(const Field& field) {
  return DescribeRow(field.dtype, field.row_shape);
}

}  // namespace stoker
