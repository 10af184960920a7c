// Field: a value that each sample of a source has, under one name. A batch has a column of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/box_format.h"
#include "core/batch/dtype.h"
#include "core/result/result.h"

namespace stoker {

// The most objects of a sample.
inline constexpr uint32_t kMaxObjects = 1 << 20;

struct Field {
  enum class Kind : uint8_t {
    kImage,   // an encoded image, to be decoded and transformed
    kMask,    // an encoded image of one channel whose values, of type kU8 or kU16, are classes or
              // instances: transforms move its pixels as they move the image's, and never blend or
              // change a value
    kFixed,   // a row in memory, of one type and shape for all samples
    kLoaded,  // such a row, set by SampleSource::Load or Unpack with the image; for strings by
              // Unpack only, as views of the record
    // The fields of a sample's objects, which have a row for each of them, in memory. A sample has
    // any number of objects, and the same number in all of these fields.
    kBoxes,      // kF32 {4}; at most one field has boxes
    kKeypoints,  // kF32 {points, 3}: x, y and visibility, where 0 means that the point is not known
    kObject,     // a row of one type and shape, which is kept or dropped with its object
    // Masks of one channel, of type kU8 or kU16, that are drawn from the shapes of the sample's
    // objects after transforms have moved these. View has the shapes of all objects of the sample
    // (core/batch/object_shapes.h), in pixels or fractions as `normalized` says.
    kInstances,  // values: 1 + the object's index among the row's objects
    kSemantic,   // values: the object's number in "labels", a field of objects
  };

  std::string name;  // unique among the fields: "image", "label"
  Kind kind = Kind::kFixed;
  DType dtype = DType::kU8;          // of a row
  std::vector<int64_t> row_shape{};  // of a row; {} for a scalar
  bool is_label = false;             // whether it is the label to train with; at most one field is
  uint16_t fill = 0;  // of a kMask: the value of pixels outside the image; if drawn, of all that
                      // no object has
  std::optional<uint16_t> crowd{};          // of a kSemantic: the value of objects with "iscrowd" 1
  BoxFormat box_format = BoxFormat::kXyxy;  // of kBoxes
  // Boxes, keypoints and shapes only: coordinates are fractions of the image's width and height,
  // not pixels. Either way they refer to the image as viewed.
  bool normalized = false;
  // Keypoints only: the point that each one becomes when the image is mirrored, such as the right
  // eye for the left one. A permutation that is its own inverse, or empty if points keep their
  // places.
  std::vector<uint16_t> flip_pairs{};
  // Encoded fields only: how many images a sample has of the field, one after another in its row,
  // whose shape begins with this number. They have one size, and get the same draw. 0 means one
  // image, and a row without this dimension.
  uint32_t count = 0;
  // kImage only: samples have any number of images of it, up to `count`. Their sizes differ, and a
  // processor (engine/arrays/processor.h) makes their rows, which follow each other.
  bool varies = false;

  // Whether samples have an encoded image of it, or several.
  bool is_encoded() const { return kind == Kind::kImage || kind == Kind::kMask; }
  // The number of encoded images that a sample has of it, at most.
  size_t images() const { return is_encoded() ? std::max(count, 1u) : 0; }
  // Whether samples have a row of it for each of their objects.
  bool is_of_objects() const {
    return kind == Kind::kBoxes || kind == Kind::kKeypoints || kind == Kind::kObject;
  }

  // Whether samples have shapes for it, and only rows of a batch have its pixels.
  bool is_drawn() const { return IsDrawn(kind); }
  static bool IsDrawn(Kind kind) { return kind == Kind::kInstances || kind == Kind::kSemantic; }

  // Precondition of all functions below: neither is_encoded() nor is_drawn(). A row is that of one
  // object, if it is a field of objects.
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

// InvalidArgument, with the name of the field and the fault: its dtype and row_shape are not those
// of its kind, it has strings, it is the label, its flip_pairs are not as above, or it is the
// second field of boxes. Likewise, a drawn field has another type, a fill or crowd that its type
// does not hold, or lacks fields of objects that it needs. Other kinds are not looked at.
Status CheckObjects(std::span<const Field> fields);

// Returns whether a name may be that of a field or a column, and be shown in messages: UTF-8 of at
// most 256 bytes without control characters.
bool IsColumnName(std::string_view name);

// Returns the fields of encoded images: "image" and, if they have labels, "label" (int64).
std::span<const Field> ImageFields(bool labels);

// Returns the type and shape of a row: "uint8 (28, 28)", "int64".
std::string DescribeRow(DType dtype, std::span<const int64_t> row_shape);
inline std::string DescribeRow(const Field& field) {
  return DescribeRow(field.dtype, field.row_shape);
}

}  // namespace stoker
