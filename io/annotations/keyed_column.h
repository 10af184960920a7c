// KeyedColumn: a column whose values are in the annotations of a container, under a key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/batch/dtype.h"
#include "core/result/result.h"
#include "io/source/field.h"

namespace stoker {

struct KeyedColumn {
  // Name, kind and options. Of kObject, and of kFixed, the values determine dtype and row_shape.
  Field field;
  // The place of the values, in the form that the container has: a column of a manifest, keys of
  // JSON objects joined by dots, a feature of an Example, the extension of a member.
  std::string key;
  std::optional<DType> dtype{};  // of kObject: to which values are converted
  // Keypoints only: points that are each other's mirror images, counted from 0.
  std::vector<std::pair<uint16_t, uint16_t>> flip_pairs{};

  // Whether its values are read by ObjectValues.
  bool is_of_objects() const { return field.is_of_objects(); }
  bool is_mask() const { return field.kind == Field::Kind::kMask; }
};

// Parses CSV records, one for each column: its name, its kind, its key and its options in any
// order:
//
//   mask       uint8 or uint16; the fill, a number
//   value      none: a column that is not of objects (kFixed)
//   boxes      xyxy, xywh or cxcywh; normalized
//   keypoints  normalized; pairs of points: 1:2
//   object     a type: bool, an integer, float32 or float64
//
// InvalidArgument: another text, no name or key, a name twice, or that of the image or the label, a
// fill above 255 of a uint8 mask.
Result<std::vector<KeyedColumn>> ParseKeyedColumns(std::string_view text);

}  // namespace stoker
