// A dataset's folder that was named in place of one of its parts.
#pragma once

#include <span>
#include <string>

namespace stoker::cli {

// Where all of a folder's classes are named as the parts of a dataset are (train, val, test, …): a
// warning that says so and names the folder that was probably meant. Else empty.
std::string SplitWarning(const std::string& directory, std::span<const std::string> classes);

// Says it on stderr, where there is one.
void WarnOfSplits(const std::string& directory, std::span<const std::string> classes);

}  // namespace stoker::cli
