// Makes a source of samples in Arrow IPC files, as Hugging Face's datasets stores them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/cache/cache_options.h"
#include "io/source/source.h"

namespace stoker {

struct ArrowOptions {
  // The column of encoded images: binary or large_binary, or a struct with such a field `bytes`,
  // like Hugging Face's Image; or a list of one of these, for samples of any number of images.
  std::string image = "image";
  // The column of labels: integers or text; nullopt means "label", if there is one; empty means
  // none.
  std::optional<std::string> label{};
  // Further columns of a batch, in this order: numbers, bool, fixed-size lists of numbers, text and
  // binary.
  std::vector<std::string> columns{};
  int threads = 0;         // for reading files; 0 means the cores allotted
  std::string root = ".";  // the folder of a pattern's relative paths; empty means they are refused
  CacheOptions cache{};    // of objects
};

// Opens the rows of all files that `pattern` matches (shard_pattern.h): "data-*.arrow",
// "data-{00000..00003}-of-00004.arrow", "one.arrow::other.arrow". A folder means the files
// that datasets' save_to_disk() put into it, in its order.
//
// Each row is a sample, in the order of the pattern, the files' record batches and their rows. The
// field "image" comes first, "label" second if there are labels (int64), then the columns under
// their names. Labels that are text are classes: classes() has them sorted by their bytes, and a
// label is the number of its class. For integers classes() has the names of Hugging Face's
// ClassLabel, if the files have them, and each label must have a name: -1, which datasets writes
// for an unknown label, is refused.
//
// If rows are lists of images (list, large_list, fixed_size_list), samples have any number of them,
// at most kMostPieces (Field::varies). A null list has none; a null image is a range without bytes,
// as in a column of images. A sample without images has the path "".
//
// An image's bytes lie unchanged in the file, so a sample is a byte range of it, and any row of any
// file may be the next one of a shuffled epoch. This call reads, by `threads` in parallel, the
// files' metadata, the position of each image, and the other columns, which stay in memory.
//
// Files are Arrow streams, as datasets writes them, or Arrow files (Feather version 2),
// uncompressed. A file that changes afterwards is not indexed again, so its samples are then wrong
// bytes.
//
// Memory: 4 bytes an image, 24 for each record batch, 8 for a list and for a label, and the
// columns.
//
// Errors, with the file and the offset of the record batch: InvalidArgument (no rows; a column that
// does not exist, with those that do; a column of an unsupported type; a null, a label above
// 2^63 - 1 or too many images, with the row; files whose columns differ; the pattern's errors),
// NotFound, PermissionDenied, DataLoss (cut off, damaged, not an Arrow file; a label without a
// class name), Unimplemented (compressed, with what to do; big-endian; written by a version before
// 0.15).
Result<std::shared_ptr<const SampleSource>> Arrow(const std::string& pattern,
                                                  const ArrowOptions& options = {});

}  // namespace stoker
