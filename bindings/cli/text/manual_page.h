// Writes the manual page of `stoker`.
#pragma once

#include <string>
#include <vector>

#include "bindings/cli/command/command_tree.h"

namespace stoker::cli {

// A paragraph of a footer, on one line, or a line that begins with a blank or is empty.
struct FooterPart {
  std::string text;
  bool is_paragraph = false;
};
std::vector<FooterPart> PartsOfFooter(const std::string& footer);

// Returns the page for section 1, as man(7) describes it: stoker.1. `version`: "0.1.0".
std::string ManualPage(const CommandFacts& program, const std::string& version);

}  // namespace stoker::cli
