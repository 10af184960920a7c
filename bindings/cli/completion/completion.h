// Writes scripts that complete `stoker` in a shell.
#pragma once

#include <string>

#include "bindings/cli/command/command_tree.h"

namespace stoker::cli {

// Each returns the script of a shell, which needs nothing but the shell.
std::string BashCompletion(const CommandFacts& program);
std::string ZshCompletion(const CommandFacts& program);
std::string FishCompletion(const CommandFacts& program);

}  // namespace stoker::cli
