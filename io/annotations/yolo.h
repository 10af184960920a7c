// Makes a source of images with boxes, from a data set in Ultralytics' format for YOLO.
#pragma once

#include <memory>
#include <string>

#include "core/result/result.h"
#include "io/annotations/drawn_masks.h"
#include "io/source/source.h"

namespace stoker {

struct YoloOptions {
  int threads = 0;     // for folders and label files; 0 means the cores allotted
  DrawnMasks masks{};  // drawn from the polygons; without a crowd
};

// `data` is a YAML file with the keys path, names and those of splits; `split` is one of these:
// "train", "val" (or "validation", in the file, too), "test". Its value is a folder of images, with
// those below it, or a .txt file that lists images, one on a line; or a list of such. They are
// relative to `path`, which is relative to the folder of `data`, and lines of a list are relative
// to the list's folder. As Ultralytics does, ../train/images is also looked for as train/images.
//
// The labels of a/images/b/7.jpg are in a/labels/b/7.txt (the last folder of this name), and those
// of other paths next to the image: lines of `class x y width height`, where x, y is the centre, or
// of `class x y x y x y …`, a polygon of three points or more, whose box is its bounds. All but the
// class are fractions of the image's width and height. Without the file, the image has no
// objects. Samples are in the order of the split's folders, each sorted bytewise by path, or of its
// lists. Fields:
//
//   image
//   boxes   kBoxes, cxcywh, normalized
//   labels  kObject int64
//   instances  kInstances, or
//   mask       kSemantic: see masks. Nothing is drawn of objects that have a box alone
//
// classes() are the names. Memory: 24 bytes for each box, and 32 for each image and its path;
// with masks, 8 for each point and 8 for each object in addition, and twice that while it opens.
//
// InvalidArgument names the file and its line: `data` is not such a file
// (io/annotations/yolo_data.h) or lacks the split; a folder without images; a line of another
// number of numbers; of more than five, if `data` has a kpt_shape, because they are poses; a class
// that has no name; coordinates that are not from 0 to 1 (1.01, as Ultralytics rounds); no image
// has a label file. NotFound: `data`, a folder, or a list. Others of InputFile::Open and of listing
// folders. Unimplemented: objects on servers.
Result<std::shared_ptr<const SampleSource>> Yolo(const std::string& data, const std::string& split,
                                                 const YoloOptions& options = {});

}  // namespace stoker
