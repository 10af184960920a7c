// Makes a source of a list of image files, with masks, labels and other values in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "io/memory/arrays.h"
#include "io/source/image_numbers.h"
#include "io/source/path_table.h"
#include "io/source/source.h"

namespace stoker {

// Further encoded images of the samples, such as masks.
struct FurtherImages {
  std::string name;                       // "mask"
  Field::Kind kind = Field::Kind::kMask;  // or kImage
  DType dtype = DType::kU8;               // of masks: or kU16, for PNGs of up to 16 bits
  uint16_t fill = 0;                      // of masks: Field::fill
  PathTable paths;                        // by sample
  std::string root{};                     // as that of FilesOptions; empty means the same
};

struct FilesOptions {
  // Which paths are a sample's, if samples have any number of images (Field::varies): at most
  // kMostPieces, and no further ones.
  ImageNumbers images{};
  // The folder of relative paths, or a URL; empty means the working folder. A relative folder is
  // made absolute when Files is called, so a later change of the working folder has no effect.
  // Relative paths are names even in a URL: "a%20b#1.png" is the object of this name.
  std::string root{};
  // Fields after the image, in this order: each sample has one file in each of them.
  std::vector<FurtherImages> further{};
  // Fields after those, with a row for each path; each becomes a column of the batch, in this
  // order. If the first one is named "label", it is the label. (Batch::labels() is the second
  // column of any batch: with masks not the labels.)
  std::vector<ArrayColumn> columns{};
  std::shared_ptr<void> owner{};  // of the columns' memory, as for Arrays()
  // By label; without labels, by the number in "labels", a column of objects.
  std::vector<std::string> class_names{};
  // By sample, the size in pixels, as viewed, of the image that was annotated; 0 × 0 if it is not
  // known. Empty means that none is.
  std::vector<ImageSize> annotated_sizes{};
  // Returns the file that has this size, for messages, by the image's path as given.
  std::function<std::string(std::string_view image)> annotation_of{};
  std::string description{};  // for messages; empty means "files(a.jpg and 99 more)"
  SkippedFiles skipped{};     // of the folder in which the paths were found
};

// Each path is a sample, in this order; a path that occurs twice is two samples. The field "image"
// comes first. No file is opened or looked for: a file that is missing, or is not an image, is an
// error of its sample when it is read.
//
// Files are numbered by field: RangeOfPiece(id, piece).file is piece * size() + id. If the
// number of images varies, files are numbered as the paths; that of a sample without images is
// their number, and has an empty path.
//
// Paths are any bytes; paths that begin with http://, https://, s3:// or gs:// are URLs of objects
// (io/remote/object_url.h). The list takes their bytes and 8 more for each.
//
// InvalidArgument describes the problem: no path, or more than 2^32 - 2 in all fields; an empty
// path or one with a NUL, with its index; images that are not as many as the paths, more than
// kMostPieces of a sample, or with further ones; a root that is an HTTP URL with a query or a
// fragment; further images that are not as many, have no name or one that another field has, are
// neither images nor masks, or masks of another type or with a fill that it does not have; the
// columns' errors of Arrays(), a number of rows other than that of the paths, a column "image", a
// "label" that is not the first one; class names without class numbers as labels, or fewer than the
// largest label needs. Also errors of finding the working folder, if it is needed.
Result<std::shared_ptr<const SampleSource>> Files(PathTable paths, FilesOptions options = {});

// The arguments of Files() for one field, which make an equal source again.
struct GivenPaths {
  const Field& field;  // of these images; valid as long as the source, as the paths
  const PathTable& paths;
  std::string root;  // absolute; empty if all paths are
};

// Returns the paths of a source that Files() made, those of the images first; empty if another
// function made it.
std::vector<GivenPaths> GivenPathsOf(const SampleSource& source);

}  // namespace stoker
