// The terminal that stderr may be.
#pragma once

#include <cstddef>

namespace stoker::cli {

// Whether stderr is one where the cursor can be moved: not in a log, nor with TERM=dumb.
bool CanRedraw();

// Of stderr's terminal; 80 by 24 where it does not say.
struct TerminalSize {
  size_t columns = 80;
  size_t rows = 24;
};
TerminalSize SizeOfTerminal();

}  // namespace stoker::cli
