// The files of AWS' tools, ~/.aws/config and ~/.aws/credentials: sections of "name = value" lines.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace stoker {

// Returns the values of one section; empty if there is none. Skips comments, lines that are not
// assignments, and indented lines, which are nested settings.
std::map<std::string, std::string> IniSection(std::string_view text, std::string_view section);

}  // namespace stoker
