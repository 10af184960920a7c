// Makes a source of images with boxes, from a JSON file of COCO's format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result/result.h"
#include "io/annotations/drawn_masks.h"
#include "io/source/source.h"

namespace stoker {

struct CocoOptions {
  enum class Keypoints : uint8_t {
    kAuto,  // read them if all annotations have the same ones
    kOn,    // read them; otherwise Coco returns an error that says why they cannot be read
    kOff,   // skip them
  };

  bool keep_empty = true;  // keep images without annotations
  bool keep_crowd = true;  // keep objects that are groups (iscrowd); without them, an image may be
                           // one without annotations
  // Labels are the indices of the categories in the order of their ids; otherwise they are the ids.
  bool contiguous_labels = false;
  Keypoints keypoints = Keypoints::kAuto;
  DrawnMasks masks{};  // drawn from the segmentations
  // Images as viewed must have the `width` and `height` in the file, if it has these.
  bool check_sizes = true;
};

// Boxes and points are taken as coordinates of the image as viewed. If photographs have an EXIF
// orientation and were annotated as they are stored, it must not be applied. (COCO's have none.)
//
// Reads the images and annotations of `json`: the file_name of an image is a path below the folder
// `images`, or URL. Samples are sorted by image id, as those of torchvision's CocoDetection are,
// and objects are in the order of the file. Fields:
//
//   image
//   boxes      kBoxes, x, y, width and height in pixels, as in the file
//   labels     kObject int64: see contiguous_labels
//   area       kObject float32; that of the box, if the file has none
//   iscrowd    kObject uint8: 1 if the box has a group of objects; 0 if the file does not say
//   image_id   kFixed int64, for evaluation
//   keypoints  kKeypoints (k, 3): if all annotations have them, and all of their
//              categories list the same names of points. Coordinates are 0.5 larger than in the
//              file, where they are pixel indices; points of visibility 0 are 0, 0. flip_pairs
//              joins left_NAME and right_NAME.
//   instances  kInstances, or
//   mask       kSemantic: see masks
//
// classes() has the names of the categories by label; those of numbers that are not ids are empty.
// If ids are negative, or 65536 or more, there are no names: take contiguous_labels.
//
// Segmentations are read for masks only: polygons, and runs (RLE) as lists or texts. Nothing is
// drawn of an object whose segmentation is an empty list. They take 8 bytes for each point, 4 for
// each run, 4 for each polygon and object, and twice that while the file is read. Memory: 29 bytes
// for each box and 12 for each of its keypoints, and for each image 64 bytes and its path; while it
// opens, 90 bytes for each box in addition.
//
// InvalidArgument, with the offset or the id, if the file is not JSON, lacks something, or has
// annotations of unknown images or categories, ids that occur twice, boxes that are not four finite
// numbers or have negative sizes, or keypoints of another number than their category's names; if
// not all annotations have the same keypoints and keypoints is kOn; with masks, if a segmentation
// is missing or wrong (io/annotations/coco_file.h), or CheckClasses refuses a class; if no image
// has annotations and keep_empty is false. NotFound: `json`, or the folder. Others of
// InputFile::Open.
Result<std::shared_ptr<const SampleSource>> Coco(const std::string& json, const std::string& images,
                                                 const CocoOptions& options = {});

}  // namespace stoker
