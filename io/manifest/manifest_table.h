// ManifestTable: the content of a manifest, and the functions that read it from CSV and JSON lines.
#pragma once

#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/manifest/manifest.h"
#include "io/manifest/value_column.h"
#include "io/source/path_table.h"

namespace stoker {

struct ManifestTable {
  PathTable paths;
  std::vector<ValueColumn> columns;  // by field, without the image; each has a row for each path
  bool has_label = false;            // whether the first one is the label
};

// Manifest()'s errors.
Result<ManifestTable> ReadCsvManifest(const std::string& path, char delimiter,
                                      const ManifestOptions& options);
Result<ManifestTable> ReadJsonManifest(const std::string& path, const ManifestOptions& options);

}  // namespace stoker
