// A folder of images, the way torchvision's ImageFolder and Keras' image_dataset_from_directory
// see it.
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "io/sources/source.h"

namespace stoker {

// Where `stoker index` puts a folder's index (dataset_index.h): a hidden file in it.
inline constexpr char kIndexName[] = ".stoker-index";

struct ImageFolderOptions {
  int threads = 0;  // that list directories in parallel; 0: the cores allotted

  // The index that has the list of the folder and says where to begin decoding: the folder's own
  // where it has one (one that cannot be used is no error then: Warning() says why not), none, or
  // this file (whose absence or damage is an error).
  enum class CropIndex { kAuto, kOff, kFile };
  CropIndex crop_index = CropIndex::kAuto;
  std::string crop_index_file = {};
};

// Lists `directory`, or reads the same list from its index, some 50 bytes a sample. That the folder
// has not changed since is told by its own names and the times of all folders in it (IsStill, in
// list_images.h). Where it has, all is listed as without an index, and Warning() says so; what the
// index knows of the files that are still there is used.
//
// The folders in it, sorted by name, are the classes; every image below a class folder, however
// deep, is a sample with that class' index as label. Within a class, samples are in the order
// torchvision gives them: sorted by (folder path, file name), bytewise. (Python sorts names that
// are not UTF-8 a little differently.) A class folder without images is an error, as it is for
// torchvision.
//
// Images are told by the extensions torchvision knows (.jpg .jpeg .png .ppm .bmp .pgm .tif .tiff
// .webp, any case); the bytes decide later. Unlike torchvision, hidden files and folders (leading
// dot) are skipped: thumbnails and ".ipynb_checkpoints" are not training data. Pipes, sockets and
// devices are, too.
//
// Symbolic links to files and folders are followed. A folder that two links lead to is listed
// twice; a loop is cut where a folder would be entered from inside itself. A link that leads
// nowhere is a sample, so that opening it fails aloud.
//
// A folder with images and no folders in it is flat: samples sorted by name, all with kNoLabel, no
// classes. Images beside class folders are not samples of any class: that is an error which says
// so.
//
// At() tells no length: nothing is stat'ed that readdir can tell, and what an index tells may be of
// the file as it was. The list costs the names of the files and 8 bytes a sample; an index 24 more,
// and 4 where the folder had to be listed.
//
// Errors: NotFound (no such folder), InvalidArgument (not a folder; no image in it; paths too long
// for the system; as above), PermissionDenied, each naming the path.
Result<std::shared_ptr<const SampleSource>> ImageFolder(const std::string& directory,
                                                        const ImageFolderOptions& options = {});

}  // namespace stoker
