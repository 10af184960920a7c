// CocoFile: the images, boxes and categories in a JSON file of COCO's format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/source/path_table.h"

namespace stoker {

struct CocoObject {
  int64_t id = 0;
  int64_t image_id = 0;
  int64_t category_id = 0;
  float box[4] = {};  // x, y, width, height in pixels, as in the file
  float area = 0;     // as in the file; otherwise that of the box
  uint8_t is_crowd = 0;
};

struct CocoCategory {
  int64_t id = 0;
  std::string name;
  std::vector<std::string> keypoints;  // their names; empty means none
};

// All lists are in the order of the file.
struct CocoFile {
  std::vector<int64_t> image_ids;
  PathTable file_names;  // by image
  std::vector<CocoObject> objects;
  std::vector<CocoCategory> categories;  // sorted by id
  // The x, y and visibility of all points of all objects; empty if an object has no list of them,
  // or if they were not to be read.
  std::vector<float> keypoints;
  std::vector<uint32_t> keypoint_numbers;  // by object: the numbers in its list; or empty likewise
  std::optional<int64_t> without_keypoints;  // the first object that has no list of them

  // Returns the category of this id; null if there is none.
  const CocoCategory* Find(int64_t category_id) const;
};

// Reads the file once, from front to back, and checks each value alone, each object against the
// images and categories, and that no id occurs twice. Memory: 48 bytes for each object and 4 for
// each number of its keypoints, and for each image 16 bytes and its name; less than twice that
// while it reads. Segmentations are skipped, and keypoints, if they are not to be read.
//
// InvalidArgument and other errors of JsonReader name the file and the offset, or the id of what is
// wrong.
Result<CocoFile> ReadCoco(const std::string& path, bool keypoints = true);

}  // namespace stoker
