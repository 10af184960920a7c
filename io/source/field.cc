#include "io/source/field.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"

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

bool IsColumnName(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; };
  return name.size() <= 256 && IsUtf8(name) && std::ranges::none_of(name, is_control);
}

std::span<const Field> ImageFields(bool labels) {
  static const std::array<Field, 2> fields = {
      Field{.name = "image", .kind = Field::Kind::kImage},
      Field{.name = "label", .dtype = DType::kI64, .is_label = true}};
  return std::span(fields).first(labels ? 2 : 1);
}

namespace {

Error RefuseField(const Field& field, const std::string& cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = "'" + field.name + "' " + cause,
          .advice = std::move(advice)};
}

Status CheckFlipPairs(const Field& field) {
  const std::vector<uint16_t>& pairs = field.flip_pairs;
  if (pairs.empty()) return {};
  if (field.kind != Field::Kind::kKeypoints ||
      std::cmp_not_equal(pairs.size(), field.row_shape[0])) {
    return RefuseField(field, "has flip_pairs of " + std::to_string(pairs.size()) + " points");
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i] < pairs.size() && pairs[pairs[i]] == i) continue;
    return RefuseField(field, "has flip_pairs that are not symmetric: point " + std::to_string(i) +
                                  " becomes " + std::to_string(pairs[i]) +
                                  ", which becomes another");
  }
  return {};
}

Status CheckObject(const Field& field) {
  const std::vector<int64_t>& shape = field.row_shape;
  const bool has_floats = field.dtype == DType::kF32;
  if (field.kind == Field::Kind::kBoxes && !(has_floats && shape == std::vector<int64_t>{4})) {
    return RefuseField(field, "has boxes of " + DescribeRow(field), "Give float32 (objects, 4)");
  }
  const bool has_points = has_floats && shape.size() == 2 && shape[1] == 3;
  if (field.kind == Field::Kind::kKeypoints && !has_points) {
    return RefuseField(field, "has keypoints of " + DescribeRow(field),
                       "Give float32 (objects, points, 3)");
  }
  if (IsString(field.dtype)) return RefuseField(field, "has strings for its objects");
  if (field.is_label)
    return RefuseField(field, "holds objects; a label is one value for each image");
  return CheckFlipPairs(field);
}

// Checks that "labels" or "iscrowd" has a number for each object.
Status CheckNumbers(const Field& drawn, std::span<const Field> fields, const char* name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  if (found != fields.end() && found->kind == Field::Kind::kObject && found->is_class_number()) {
    return {};
  }
  return RefuseField(drawn, "is drawn by the numbers of objects in a field '" + std::string(name) +
                                "', and there is none");
}

Status CheckDrawn(const Field& field, std::span<const Field> fields) {
  if (field.dtype != DType::kU8 && field.dtype != DType::kU16) {
    return RefuseField(field, "has masks of " + std::string(NameOf(field.dtype)),
                       "Give uint8 or uint16");
  }
  const int most = field.dtype == DType::kU8 ? 255 : 65535;
  if (field.fill > most || field.crowd.value_or(0) > most) {
    return RefuseField(field, "has masks of uint8 with a value over 255",
                       "Give 0 to 255, or uint16");
  }
  if (std::ranges::none_of(fields, &Field::is_of_objects)) {
    return RefuseField(field, "has shapes, and samples have no other fields of objects");
  }
  if (field.kind == Field::Kind::kInstances) return {};
  TRY(CheckNumbers(field, fields, "labels"));
  return field.crowd ? CheckNumbers(field, fields, "iscrowd") : Status();
}

}  // namespace

Status CheckObjects(std::span<const Field> fields) {
  const Field* boxes = nullptr;
  for (const Field& field : fields) {
    if (field.is_drawn()) TRY(CheckDrawn(field, fields));
    if (!field.is_of_objects()) continue;
    TRY(CheckObject(field));
    if (field.kind != Field::Kind::kBoxes) continue;
    if (boxes != nullptr) {
      return RefuseField(field, "is a second field of boxes, after '" + boxes->name + "'",
                         "Give one field of boxes");
    }
    boxes = &field;
  }
  return {};
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
