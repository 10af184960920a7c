#include "io/source/field.h"

#include <array>
#include <cstring>
#include <utility>

namespace stoker {

namespace {

template <typename T>
int64_t As(const void* from) {
  T value = 0;
  std::memcpy(&value, from, sizeof(value));
  return std::in_range<int64_t>(value) ? static_cast<int64_t>(value) : INT64_MAX;
}

}  // namespace

int64_t Field::ClassNumberIn(const void* row) const {
  switch (dtype) {
    case DType::kBool:
      return As<uint8_t>(row) != 0 ? 1 : 0;  // a byte that a program made may be another number
    case DType::kU8:
      return As<uint8_t>(row);
    case DType::kI8:
      return As<int8_t>(row);
    case DType::kU16:
      return As<uint16_t>(row);
    case DType::kI16:
      return As<int16_t>(row);
    case DType::kU32:
      return As<uint32_t>(row);
    case DType::kI32:
      return As<int32_t>(row);
    case DType::kU64:
      return As<uint64_t>(row);
    default:
      return As<int64_t>(row);
  }
}

std::span<const Field> ImageFields(bool labels) {
  static const std::array<Field, 2> fields = {
      Field{.name = "image", .kind = Field::Kind::kImage},
      Field{.name = "label", .dtype = DType::kI64, .is_label = true}};
  return std::span(fields).first(labels ? 2 : 1);
}

size_t LoadedBytes(std::span<const Field> fields) {
  size_t bytes = 0;
  for (const Field& field : fields) bytes += LoadedBytes(field);
  return bytes;
}

std::string DescribeRow(DType dtype, std::span<const int64_t> row_shape) {
  std::string text = NameOf(dtype);
  for (size_t i = 0; i < row_shape.size(); ++i) {
    text += (i == 0 ? " (" : ", ") + std::to_string(row_shape[i]);
  }
  return row_shape.empty() ? text : text + ")";
}

}  // namespace stoker
