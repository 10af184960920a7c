// CocoFile: the images, boxes and categories in a JSON file of COCO's format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/batch/image.h"
#include "core/batch/object_shapes.h"
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
  PathTable file_names;                // by image
  std::vector<ImageSize> image_sizes;  // by image; 0 × 0 if it is missing, or is not a size
  std::vector<CocoObject> objects;
  std::vector<CocoCategory> categories;  // sorted by id
  // The x, y and visibility of all points of all objects; empty if an object has no list of them,
  // or if they were not to be read.
  std::vector<float> keypoints;
  std::vector<uint32_t> keypoint_numbers;  // by object: the numbers in its list; or empty likewise
  std::optional<int64_t> without_keypoints;  // the first object that has no list of them
  // The segmentations of all objects, and the first word of each; empty if they were not to be
  // read.
  ObjectShapes shapes;
  std::vector<size_t> shapes_at;

  // Returns the category of this id; null if there is none.
  const CocoCategory* Find(int64_t category_id) const;
};

// Reads the file once, from front to back, and checks each value alone, each object against the
// images and categories, and that no id occurs twice. Memory: 48 bytes for each object and 4 for
// each number of its keypoints, and for each image 24 bytes and its name; less than twice that
// while it reads. Segmentations and keypoints are skipped if they are not to be read; the former
// take 8 bytes for each point and 4 for each run, in addition to 12 for each object. A coordinate
// becomes the float32 next to it that is in the same fifth of a pixel
// (transforms/shapes/polygon_fill.h).
//
// InvalidArgument, with the id of the annotation: a segmentation that is neither a list of polygons
// nor runs, a polygon of fewer than three points or of an odd number of coordinates, coordinates
// that float32 does not hold, runs that are not numbers or are more than their image has pixels, or
// an image of another size than theirs. InvalidArgument and other errors of JsonReader name the
// file and the offset, or the id of what is wrong.
struct CocoParts {
  bool keypoints = true;
  bool shapes = false;
};
Result<CocoFile> ReadCoco(const std::string& path, const CocoParts& parts = {});

}  // namespace stoker
