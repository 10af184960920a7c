// Detects that the user named a dataset's folder instead of one of its splits.
#pragma once

#include <span>
#include <string>

namespace stoker {

// Returns a warning that names the folder that was probably meant, if all of a folder's classes are
// named like splits of a dataset (train, val, test, …). Otherwise empty.
std::string SplitWarning(const std::string& directory, std::span<const std::string> classes);

// The same for a packed set, which has no class folders.
std::string PackedSplitWarning(const std::string& directory, std::span<const std::string> classes);

// The error where a packed set is expected and `directory` holds several, of these names.
struct PackedSetsInside {
  std::string cause, advice;
};
PackedSetsInside DescribePackedSets(const std::string& directory,
                                    std::span<const std::string> names);

}  // namespace stoker
