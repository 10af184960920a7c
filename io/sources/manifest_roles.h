// The roles of a manifest's columns: paths, label, further columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "io/sources/manifest.h"

namespace stoker {

// By indices into the names that the file has.
struct ManifestRoles {
  size_t path = 0;
  bool has_label = false;
  std::vector<size_t> values;  // the label first, if there is one
};

// Whether messages and fields may have this name: UTF-8 without control characters, and short.
bool IsColumnName(std::string_view name);

// InvalidArgument without a file: a column that is not there, or that cannot be told from another,
// or has a name that no field may have.
Result<ManifestRoles> FindRoles(const std::vector<std::string>& names,
                                const ManifestOptions& options);

}  // namespace stoker
