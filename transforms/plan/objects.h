// The objects of a sample, as a plan sees them: where they are, and where those that are kept go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/batch/box_format.h"

namespace stoker {

// A value that each object of a sample has.
struct ObjectField {
  enum class Kind : uint8_t {
    kBoxes,      // 4 float32
    kKeypoints,  // 3 float32 for each point: x, y and visibility
    kValue,      // bytes that transforms do not change
  };
  Kind kind = Kind::kValue;
  size_t bytes = 0;                     // of one object, both read and written
  BoxFormat format = BoxFormat::kXyxy;  // of boxes: how they are read, and written
  bool normalized = false;  // read as shares of the image's width and height; written in pixels
  std::vector<uint16_t> flip_pairs{};  // of keypoints: Field::flip_pairs

  friend bool operator==(const ObjectField&, const ObjectField&) = default;
};

// A mask of one channel that is drawn from the shapes of a sample's objects, after these were
// moved. Pixels of several objects belong to the one that has the fewest in the row, or else to the
// last.
struct ShapeMask {
  // The shapes of all objects: see core/batch/object_shapes.h. Those of a row of several samples
  // are valid until it is finished.
  std::span<const uint8_t> shapes{};
  bool normalized = false;  // their polygons: shares of the image's width and height
  // The values of all objects; empty if each one has its number, from 1, among those of the row.
  std::span<const uint16_t> values{};
  uint16_t background = 0;  // the value of other pixels, and of padding
  size_t bytes = 1;         // of a pixel: 1 or 2
  // (height, width) of the plan's RowSize(), of any alignment. Each sample of a row of several
  // writes its part.
  void* row = nullptr;
};

// The objects of one sample. Its spans are by PlanOptions::objects.
struct ObjectRows {
  std::span<const std::span<const uint8_t>> from{};  // all objects, dense, of any alignment
  // The rows of those that are kept, dense and in their order; there is room for all. Empty if
  // nothing is written, as for a further piece, whose draw may need the objects.
  std::span<void* const> to{};
  // Is set to their number; null if `to` is empty. A further sample of a row has the same `to` and
  // `kept` as those before it, and its objects follow theirs: its number is added.
  int64_t* kept = nullptr;
  uint32_t count = 0;                  // of objects in `from`
  std::span<const ShapeMask> masks{};  // are drawn when the others are written
};

}  // namespace stoker
