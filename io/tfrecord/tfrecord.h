// Makes a source of samples in TFRecord files, with one tf.train.Example in each record.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/annotations/keyed_column.h"
#include "io/cache/cache_options.h"
#include "io/source/source.h"

namespace stoker {

inline constexpr char kTfRecordImage[] = "image/encoded";
inline constexpr char kTfRecordLabel[] = "image/class/label";

// Features are named as in the Example.
struct TfRecordOptions {
  std::string image = kTfRecordImage;  // the encoded image: one value of bytes
  std::string label = kTfRecordLabel;  // one integer; empty means samples have no labels
  // Further columns of a batch: integers (int64), floats (float32), or one byte string of at most
  // 1 MiB (kBytes; not for batches on a device). Every record has as many values as the first one;
  // a single one is a scalar.
  std::vector<std::string> columns{};
  // Further columns with another name than the feature (kFixed), and columns of objects
  // (io/tfrecord/tfrecord_objects.h).
  std::vector<KeyedColumn> keyed{};
  std::vector<std::string> class_names{};  // by label; empty means labels have no names
  int threads = 0;                         // for indexing files; 0 means the cores allotted
  std::string root = ".";  // the folder of a pattern's relative paths; empty means they are refused
  CacheOptions cache{};    // of objects
};

// Opens the samples in all files that `pattern` matches (shard_pattern.h): "train-*.tfrecord",
// "train-{00000..01023}-of-01024", "one.tfrecord::other.tfrecord".
//
// Samples are in the order of the pattern and, in a file, of its records. Any sample of any file
// may be the next one of a shuffled epoch: nothing is read from front to back. Each file is indexed
// once, by `threads` in parallel: only the records' lengths are read, and checked. The index is
// kept in the user's cache folder until the file changes (shard_index_file.h); where it cannot be
// written, the file is indexed again each time. The first record determines the type and shape of
// the columns.
//
// Columns of objects have their values in memory: all records are read once, with their checksums,
// and the values of each feature are kept in an index file of their own. They come after all other
// fields. Text in "labels", a column of objects, is the class names, if there is no label.
//
// A record is read as a whole when it is needed; its checksum is checked, and its features are
// extracted. A fault in it is the error of its batch, with the file and the record's offset:
// DataLoss for a wrong checksum, bytes that are not an Example, a feature that is missing, or has
// another type or number of values, and a label without a class name.
//
// Memory: 8 bytes a sample, and the values of objects (io/annotations/object_values.h).
//
// Errors, with the file and the offset: InvalidArgument (no records; features that the first record
// does not have, or whose type is wrong; wrong objects; the pattern's errors), NotFound,
// PermissionDenied, DataLoss (cut off, damaged, not a TFRecord file), Unimplemented (compressed; a
// column of several byte strings).
Result<std::shared_ptr<const SampleSource>> TfRecord(const std::string& pattern,
                                                     const TfRecordOptions& options = {});

}  // namespace stoker
