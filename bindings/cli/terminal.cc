#include "bindings/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace stoker::cli {

bool CanRedraw() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (kind == nullptr || kind != std::string_view("dumb"));
}

TerminalSize SizeOfTerminal() {
  TerminalSize size;
  winsize told{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &told) != 0) return size;
  if (told.ws_col > 1) size.columns = told.ws_col;
  if (told.ws_row > 1) size.rows = told.ws_row;
  return size;
}

}  // namespace stoker::cli
