// Makes a source of images with boxes or masks, from a data set of Pascal VOC's layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

struct VocOptions {
  enum class Task : uint8_t { kDetection, kSegmentation };

  // The year in the folder's name, VOC2012. Empty means that in the name of `root`, or else 2012.
  std::string year{};
  std::string split = "train";  // the name of a list, without .txt
  Task task = Task::kDetection;
  // Detection only.
  bool keep_difficult = true;  // keep objects that are marked as difficult
  // Coordinates in the files are numbers of pixels, from 1, and those of xmax and ymax belong to
  // the box, as in VOC: boxes begin at xmin - 1, ymin - 1. Otherwise boxes are as in the files.
  bool one_based = true;
  std::vector<std::string> class_names{};  // by label; empty means VOC's 20
  // Images as viewed must have the size in their annotation, if it has one.
  bool check_sizes = true;
  // Segmentation only.
  bool instances = false;  // read SegmentationObject, too
  uint16_t fill = 255;     // Field::fill of the masks; 255 is VOC's void

  int threads = 0;  // for folders and annotations; 0 means the cores allotted
};

// `root` is the folder VOC2012 (of any name, if it has ImageSets), the folder VOCdevkit, the one
// that it is in, or one with TrainVal/VOCdevkit, as VOC2011 has. Each line of the split's list
// names an image of JPEGImages, without its extension; samples are in the order of the list.
//
// Detection: ImageSets/Main/train.txt and Annotations/NAME.xml (io/annotations/voc_annotation.h).
// Objects are in the order of the file. Fields:
//
//   image
//   boxes      kBoxes, xyxy in pixels: see one_based. They may exceed the image
//   labels     kObject int64: the index in class_names
//   difficult, truncated, occluded  kObject uint8: 0 or 1
//
// classes() are the names: VOC's are in alphabetical order.
//
// Segmentation: ImageSets/Segmentation/train.txt, SegmentationClass/NAME.png and, with instances,
// SegmentationObject/NAME.png. Fields:
//
//   image
//   mask       kMask uint8: 0 is background, 1 to 20 are the classes (their label + 1), 255 is void
//   instances  kMask uint8: 0 is background, 1, … are the objects, 255 is void
//
// Memory: 27 bytes for each box, and for each image 40 bytes and its path; while it opens, 130
// bytes for each box in addition.
//
// NotFound: a folder or the list. InvalidArgument, with the file and its line: a list that is
// empty; an image, annotation or mask that is not there, or an image twice with two extensions; a
// wrong annotation; a class that is not in class_names, with all such classes; a box that begins
// before the first pixel, if they are one_based; options of the other task. Unimplemented: objects
// on servers. Others of InputFile::Open and of listing folders.
Result<std::shared_ptr<const SampleSource>> Voc(const std::string& root,
                                                const VocOptions& options = {});

// Whether `root` is a folder that Voc takes for some year, by the names of its folders.
bool IsVocFolder(const std::string& root);

}  // namespace stoker
