// ManifestTable: the content of a manifest, and the functions that read it from CSV and JSON lines.
#pragma once

#include <cstddef>
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
  // By field, without the image and those of objects; each has a row for each path.
  std::vector<ValueColumn> columns;
  bool has_label = false;               // whether the first one is the label
  size_t masks = 0;                     // how many at the end are paths of masks: text
  std::vector<ObjectValues> objects{};  // each has as many samples as there are paths
};

// Manifest()'s errors.
Result<ManifestTable> ReadCsvManifest(const std::string& path, char delimiter,
                                      const ManifestOptions& options);
Result<ManifestTable> ReadJsonManifest(const std::string& path, const ManifestOptions& options);

}  // namespace stoker
