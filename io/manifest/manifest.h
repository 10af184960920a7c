// Makes a source of a manifest: a file that lists image files, with labels and further columns.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/annotations/keyed_column.h"
#include "io/source/source.h"

namespace stoker {

struct ManifestOptions {
  // The folder of relative paths; empty means that of the manifest.
  std::string root{};
  // The column of paths; empty means the first that exists of "path", "file_name", "filename",
  // "image" and "filepath". In JSON lines it may have lists of paths: FilesOptions::images.
  std::string path_column{};
  // The column of labels; nullopt means "label", if there is one; empty means none.
  std::optional<std::string> label_column{};
  // Further columns, in the order of a batch's columns; nullopt means all that have names, in their
  // order, and none if there are keyed ones.
  std::optional<std::vector<std::string>> columns{};
  // Masks, further columns with another name than in the file, and, in JSON lines, columns of
  // objects (io/annotations/object_json.h). The key of the others is a column of the file.
  std::vector<KeyedColumn> keyed{};
};

// Each row is a sample, in the file's order. The field "image" comes first, then the masks, "label"
// if there are labels, the columns under their names, those that are keyed, and last those of
// objects. The name's ending determines the format:
//
//   .csv, .tsv  io/manifest/csv_reader.h, with commas or tabs. The first record has the names. A
//               column is int64 if all of its fields are integers, float64 if they are numbers,
//               else text.
//
//   .jsonl, .ndjson  one JSON object a line. The keys of the first line are the columns, and all
//               lines have them: int64, float64 (even if some are integers), bool, text, or a list
//               of numbers, of equal length on all lines: a vector.
//
// Labels that are text are classes: classes() has them sorted by their bytes, and a label is the
// number of its class, as in a folder of class folders. If there is no label, the same is done with
// text in "labels", a column of objects.
//
// The file is read once, by this call; the images are not opened or looked for. The columns stay in
// memory: 8 bytes for a number, and for a path 8 and its own bytes.
//
// InvalidArgument describes the problem, with file, line and byte if it is in the file: an unknown
// ending, a column that does not exist or exists twice, a row with more or fewer fields, a missing
// path, label or number, a value of another type, wrong objects; Files()'s errors. Errors of the
// system.
Result<std::shared_ptr<const SampleSource>> Manifest(const std::string& path,
                                                     const ManifestOptions& options = {});

// Returns whether the path has a manifest's ending.
bool IsManifest(std::string_view path);

}  // namespace stoker
