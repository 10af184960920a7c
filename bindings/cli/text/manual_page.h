// Writes the manual page of `stoker`.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace stoker::cli {

// Returns the page for section 1, as man(7) describes it: stoker.1, with the texts of --help.
// `version`: "0.1.0".
std::string ManualPage(CLI::App& app, const std::string& version);

}  // namespace stoker::cli
