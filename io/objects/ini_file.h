// The files of AWS' tools, ~/.aws/config and ~/.aws/credentials: sections of "name = value" lines.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace stoker {

// The values of one section; empty if there is none. Lines that are no assignment are skipped, as
// are comments and what is indented (settings of settings).
std::map<std::string, std::string> IniSection(std::string_view text, std::string_view section);

}  // namespace stoker
