// A dataset's folder that was named in place of one of its parts.
#pragma once

#include <span>
#include <string>

namespace stoker::cli {

// A warning where all of a folder's classes are named like splits of a dataset (train, val, test,
// …), which names the folder that was probably meant. Else empty.
std::string SplitWarning(const std::string& directory, std::span<const std::string> classes);

// Prints that warning on stderr, if any.
void WarnOfSplits(const std::string& directory, std::span<const std::string> classes);

}  // namespace stoker::cli
