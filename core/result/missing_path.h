// Explains why a path may not exist: it is written the way other systems or programs write paths.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

// Returns advice for the path of a file that does not exist, to read or to write; empty if the path
// looks normal. A folder's name may have a backslash or be "~" or "file:", so advice is only on
// parts of the path that do not exist.
std::string AdviceOnMissing(std::string_view path);

}  // namespace stoker
