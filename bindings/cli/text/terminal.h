// Properties of the terminals of stdout and stderr, if they are terminals.
#pragma once

#include <cstddef>

#include "bindings/cli/text/text_layout.h"

namespace stoker::cli {

// Returns whether stderr is a terminal whose cursor can be moved: not a log, nor TERM=dumb.
bool CanRedraw();

// Returns whether to write colour to stdout: it is a terminal, not TERM=dumb, and NO_COLOR is not
// set or empty (https://no-color.org).
bool WantsColour();

// The size of stderr's terminal; 80 by 24 if unknown.
struct TerminalSize {
  size_t columns = 80;
  size_t rows = 24;
};
TerminalSize SizeOfTerminal();

// The width of the terminal, if stdout is one; prose is at most 100 columns wide.
PageWidth WidthOfPage();

}  // namespace stoker::cli
