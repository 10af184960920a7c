// Finds the roles of a manifest's columns: paths, label, further columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/manifest/manifest.h"

namespace stoker {

// Indices into the names that the file has.
struct ManifestRoles {
  size_t path = 0;
  bool has_label = false;
  std::vector<size_t> values;         // the label first, if there is one; the masks last
  std::vector<std::string> fields{};  // the names of the values' fields
  size_t masks = 0;
};

// InvalidArgument, without a file: a column does not exist, is ambiguous, or has a name that no
// field may have.
Result<ManifestRoles> FindRoles(const std::vector<std::string>& names,
                                const ManifestOptions& options);

}  // namespace stoker
