// Reads the files of labels that YOLO trains with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"

namespace stoker {

struct YoloLabels {
  std::vector<float> boxes;  // center x, center y, width, height, normalized; four of each object
  std::vector<int64_t> classes;
};

// Appends the objects of a file to `labels`. `classes`: how many classes have names. Errors:
// InvalidArgument, with `path`, the line and its offset, also for more than 2^20 objects.
Status ParseYoloLabels(std::string_view text, const std::string& path, size_t classes,
                       YoloLabels& labels);

}  // namespace stoker
