// Reads the files of labels that YOLO trains with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/object_shapes.h"
#include "core/result/result.h"

namespace stoker {

struct YoloLabels {
  std::vector<float> boxes;  // center x, center y, width, height, normalized; four of each object
  std::vector<int64_t> classes;
  ObjectShapes shapes;  // of all objects, if they were to be read; those of boxes have no parts
};

struct YoloLines {
  size_t classes = 0;      // how many classes have names
  bool keypoints = false;  // lines of more than five numbers are poses, which are not read
  bool shapes = false;     // polygons are kept
};

// Appends the objects of a file to `labels`: boxes, and polygons, whose boxes are their bounds.
// Errors: InvalidArgument, with `path`, the line and its offset, also for more than 2^20 objects.
Status ParseYoloLabels(std::string_view text, const std::string& path, const YoloLines& lines,
                       YoloLabels& labels);

}  // namespace stoker
