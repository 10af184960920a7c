// Writes the manual page of `stoker`.
#pragma once

#include <string>

#include "bindings/cli/command_tree.h"

namespace stoker::cli {

// Returns the page for section 1, as man(7) describes it: stoker.1. `version`: "0.1.0".
std::string ManualPage(const CommandFacts& program, const std::string& version);

}  // namespace stoker::cli
