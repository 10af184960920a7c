// Makes a source of a folder of images, listed like torchvision's ImageFolder and Keras'
// image_dataset_from_directory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// The hidden file in a folder where `stoker index` puts its index (dataset_index.h).
inline constexpr char kIndexName[] = ".stoker-index";

struct ImageFolderOptions {
  int threads = 0;  // for listing directories; 0 means the cores allotted

  // The index to use. kAuto: the folder's own, if it has one (if it cannot be used, Warning() says
  // why). kOff: no index. kFile: this file; a missing or damaged file is an error.
  enum class CropIndex { kAuto, kOff, kFile };
  CropIndex crop_index = CropIndex::kAuto;
  std::string crop_index_file = {};

  // The classes by label, as of the training set; empty means the names of the folders, sorted.
  // Each class folder must be one of them.
  std::vector<std::string> class_names = {};
  // Classes may have no images; those in `class_names` may even have no folder.
  bool allow_empty = false;
};

// Lists `directory`, or reads the same list from its index, some 50 bytes a sample. Names in the
// folder and the times of all folders in it show whether it may have changed since (IsStill, in
// list_images.h). If so, everything is listed as without an index, and Warning() says whether it
// has; the index is still used for the files that still exist.
//
// The folders in it, sorted by name, are the classes; every image below a class folder, however
// deep, is a sample with that class' index as label. Within a class, samples are in torchvision's
// order: sorted by (folder path, file name), bytewise. (Python sorts names that are not UTF-8 a
// little differently.) A class without images is an error unless `allow_empty`, as it is for
// torchvision. `class_names` affect labels, not the samples or their order.
//
// Images are recognised by the extensions of torchvision and Keras (.jpg .jpeg .png .ppm .bmp .pgm
// .tif .tiff .webp .gif) and of further formats that are decoded (.avif .heic .heif .hif .jp2 .j2k
// .j2c .jpc .dib .pnm .pbm), in any case; the bytes decide later. Unlike torchvision, hidden files
// and folders (leading dot) are skipped: thumbnails and ".ipynb_checkpoints" are not training data.
// Pipes, sockets and devices are skipped, too.
//
// Symbolic links to files and folders are followed. A folder that two links lead to is listed
// twice; a loop is cut where a folder would be entered from inside itself. A dangling link is a
// sample, so that opening it reports the error.
//
// A folder with images and no folders in it is flat: samples sorted by name, without labels or
// classes. Images next to class folders belong to no class, which is an error.
//
// RangeOf() returns no length: nothing is stat'ed that readdir can tell, and the index may describe
// an earlier state of the file. The list costs the names of the files and 8 bytes a sample; an
// index 24 more, and 4 if the folder had to be listed.
//
// Errors: NotFound (no such folder), InvalidArgument (not a folder; no image in it; paths too long
// for the system; class names for a flat folder, or one twice; as above), PermissionDenied, each
// naming the path.
Result<std::shared_ptr<const SampleSource>> ImageFolder(const std::string& directory,
                                                        const ImageFolderOptions& options = {});

}  // namespace stoker
