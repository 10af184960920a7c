// A list of image files, with labels and other values in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "io/sources/arrays.h"
#include "io/sources/path_table.h"
#include "io/sources/source.h"

namespace stoker {

struct FilesOptions {
  // The folder of relative paths, or a URL; empty: the working folder. Where it is relative itself,
  // it is made absolute when Files is called: a later change of the working folder changes nothing.
  std::string root{};
  // Fields beside the image, with a row for each path; each becomes a column of the batch, in this
  // order. A first one with the name "label" is the label (and Batch::labels(), which is the second
  // column of any batch).
  std::vector<ArrayColumn> columns{};
  std::shared_ptr<void> owner{};           // of the columns' memory, as for Arrays()
  std::vector<std::string> class_names{};  // by label
  std::string description{};               // for messages; empty: "files(a.jpg and 99 more)"
};

// Each path is a sample, in this order; one that is there twice is two samples. The field "image"
// comes first. No file is opened or looked for: one that is missing, or is no image, is the error
// of its sample when it is read.
//
// Paths are any bytes; those that begin with http://, https://, s3:// or gs:// are URLs of objects
// (io/objects/object_url.h). The list takes their bytes and 8 more for each.
//
// InvalidArgument names what is wrong: no path, or 2^32 - 1 and more; an empty path or one with a
// NUL, with its index; the columns' errors of Arrays(), other numbers of rows than paths, a column
// "image", a "label" that is not the first one; class names without a label of integers, or fewer
// than the largest label needs. Errors of finding the working folder, if it is needed.
Result<std::shared_ptr<const SampleSource>> Files(PathTable paths, FilesOptions options = {});

}  // namespace stoker
