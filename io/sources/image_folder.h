// A folder of images, the way torchvision's ImageFolder and Keras' image_dataset_from_directory
// see it.
#pragma once

#include <memory>
#include <string>

#include "engine/core/result.h"
#include "io/sources/source.h"

namespace stoker {

struct ImageFolderOptions {
  int threads = 0;  // that list directories in parallel; 0: the cores allotted
};

// Lists `directory`. Its folders, sorted by name, are the classes; every image below a class
// folder, however deep, is a sample with that class' index as label. Within a class, samples are in
// the order torchvision gives them: sorted by (folder path, file name), bytewise. Symbolic links to
// files and folders are followed, loops are cut. Images are told by the extensions torchvision
// knows
// (.jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp, any case); the bytes decide later. A class
// folder without images is an error (torchvision), a hidden file or folder (leading dot) is
// skipped.
//
// A folder with images and no folders in it is flat: samples sorted by name, all with kNoLabel, no
// classes. Images beside class folders are not samples of any class: that is an error which says
// so.
//
// Sizes are unknown until a file is opened: nothing is stat'ed that readdir can tell.
// Errors: NotFound (no such folder), InvalidArgument (not a folder; no image in it; as above),
// PermissionDenied, each naming the path.
Result<std::shared_ptr<const SampleSource>> ImageFolder(const std::string& directory,
                                                        const ImageFolderOptions& options = {});

}  // namespace stoker
