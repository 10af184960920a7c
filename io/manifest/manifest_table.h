// ManifestTable: the content of a manifest, and the functions that read it from CSV and JSON lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/annotations/object_values.h"
#include "io/manifest/manifest.h"
#include "io/manifest/value_column.h"
#include "io/source/path_table.h"

namespace stoker {

struct ManifestTable {
  PathTable paths;
  std::vector<uint64_t> ends{};  // of lists of paths: ImageNumbers::ends
  // By field, without the image and those of objects; each has a row for each path, or list of
  // them.
  std::vector<ValueColumn> columns;
  bool has_label = false;               // whether the first one is the label
  size_t masks = 0;                     // how many at the end are paths of masks: text
  std::vector<ObjectValues> objects{};  // each has the samples of `columns`
};

// Manifest()'s errors.
Result<ManifestTable> ReadCsvManifest(const std::string& path, char delimiter,
                                      const ManifestOptions& options);
Result<ManifestTable> ReadJsonManifest(const std::string& path, const ManifestOptions& options);

}  // namespace stoker
