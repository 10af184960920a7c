// VocAnnotation: the objects of an image, from an XML file of Pascal VOC's format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "io/files/text_file.h"

namespace stoker {

struct VocObject {
  std::string name;       // of its class; not empty
  double box[4] = {};     // xmin, ymin, xmax, ymax, as in the file: finite, and not reversed
  uint8_t difficult = 0;  // these are 0 or 1; 0 if the file does not say
  uint8_t truncated = 0;
  uint8_t occluded = 0;
  TextPosition position;  // for messages
};

struct VocAnnotation {
  ImageSize size;                  // of the image; 0 × 0 if it is missing, or is not a size
  std::vector<VocObject> objects;  // in the order of the file
};

// Parses `text`, the whole file `path`: the element `annotation` with `object`s. Other elements
// have no effect, such as the parts of a person, which have names and boxes
// of their own. Memory: 16 times the text.
//
// InvalidArgument, with the file, the line and its offset: the text is not XML, or has a DOCTYPE;
// its root is another element; an object without a name or a box, or with two; numbers that are not
// finite; a box that ends before it begins; flags other than 0 and 1. ResourceExhausted if there is
// no memory.
Result<VocAnnotation> ParseVocAnnotation(std::string_view text, const std::string& path);

}  // namespace stoker
