// Properties of the terminal of stderr, if stderr is one.
#pragma once

#include <cstddef>

namespace stoker::cli {

// Returns whether stderr is a terminal whose cursor can be moved: not a log, nor TERM=dumb.
bool CanRedraw();

// The size of stderr's terminal; 80 by 24 if unknown.
struct TerminalSize {
  size_t columns = 80;
  size_t rows = 24;
};
TerminalSize SizeOfTerminal();

}  // namespace stoker::cli
