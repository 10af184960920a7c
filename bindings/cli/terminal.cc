#include "bindings/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace stoker::cli {

namespace {

bool IsTerminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  return isatty(descriptor) == 1 && (kind == nullptr || kind != std::string_view("dumb"));
}

}  // namespace

bool CanRedraw() { return IsTerminal(STDERR_FILENO); }

bool WantsColour() {
  const char* unwanted = std::getenv("NO_COLOR");
  return (unwanted == nullptr || *unwanted == '\0') && IsTerminal(STDOUT_FILENO);
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
