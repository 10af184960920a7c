// Makes a source of images and their masks, which lie in two folders.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

struct MasksOptions {
  std::string suffix{};      // at the end of a mask's stem: "_mask" for cat.jpg and cat_mask.png
  DType dtype = DType::kU8;  // of the masks: or kU16, for PNGs of up to 16 bits
  uint16_t fill = 0;         // Field::fill of the masks
  int threads = 0;           // for listing directories; 0 means the cores allotted
};

// Joins the images below `images` with the PNG files below `masks` by their paths relative to these
// folders: "street/7.jpg" has the mask "street/7" + suffix + ".png". Files() of both: the fields
// "image" and "mask", sorted bytewise by the image's relative path. There are no labels.
//
// Folders are listed as ImageFolder does (image_folder.h), but their subfolders are not classes:
// images may be next to them, and a folder may be empty. A PNG file is a mask if its stem ends with
// the suffix; other files in the masks' folder are ignored. `masks` may be the folder `images` if
// there is a suffix; the masks are then not images. Skipped() counts image files of other formats
// in the folder of images.
//
// Errors: those of listing a folder, naming it; Unimplemented for folders of objects;
// InvalidArgument for a suffix with a slash or a NUL, for the same folder twice without a suffix,
// for a folder without images or masks, two images or masks that differ in their extensions only,
// and, with both counts and the first of each, for images without a mask and masks without an
// image.
Result<std::shared_ptr<const SampleSource>> Masks(const std::string& images,
                                                  const std::string& masks,
                                                  const MasksOptions& options = {});

}  // namespace stoker
