// Makes a source of a manifest: a file that lists image files, with labels and further columns.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

struct ManifestOptions {
  // The folder of relative paths; empty means that of the manifest.
  std::string root{};
  // The column of paths; empty means the first that exists of "path", "file_name", "filename",
  // "image" and "filepath".
  std::string path_column{};
  // The column of labels; nullopt means "label", if there is one; empty means none.
  std::optional<std::string> label_column{};
  // Further columns, in the order of a batch's columns; nullopt means all that have names, in their
  // order.
  std::optional<std::vector<std::string>> columns{};
};

// Each row is a sample, in the file's order. The field "image" comes first, "label" second if there
// are labels, then the columns under their names. The name's ending determines the format:
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
// number of its class, as in a folder of class folders.
//
// The file is read once, by this call; the images are not opened or looked for. The columns stay in
// memory: 8 bytes for a number, and for a path 8 and its own bytes.
//
// InvalidArgument describes the problem, with file, line and byte if it is in the file: an unknown
// ending, a column that does not exist or exists twice, a row with more or fewer fields, a missing
// path, label or number, a value of another type; Files()'s errors. Errors of the system.
Result<std::shared_ptr<const SampleSource>> Manifest(const std::string& path,
                                                     const ManifestOptions& options = {});

// Returns whether the path has a manifest's ending.
bool IsManifest(std::string_view path);

}  // namespace stoker
