// Tells why there may be no file with a path: it is written as other systems and programs write it.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

// Returns advice for the path of a file that does not exist, to read or to write; empty means it
// looks like a usual one. A folder's name may have a backslash or be "~" or "file:", so advice is
// only on parts of the path that do not exist.
std::string AdviceOnMissing(std::string_view path);

}  // namespace stoker
