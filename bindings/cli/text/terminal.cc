#include "bindings/cli/text/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
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

namespace {

TerminalSize SizeOf(int descriptor) {
  TerminalSize size;
  winsize told{};
  if (ioctl(descriptor, TIOCGWINSZ, &told) != 0) return size;
  if (told.ws_col > 1) size.columns = told.ws_col;
  if (told.ws_row > 1) size.rows = told.ws_row;
  return size;
}

}  // namespace

TerminalSize SizeOfTerminal() { return SizeOf(STDERR_FILENO); }

PageWidth WidthOfPage() {
  constexpr size_t kWidestProse = 100;
  if (isatty(STDOUT_FILENO) != 1) return {};
  const size_t columns = SizeOf(STDOUT_FILENO).columns;
  return {.prose = std::min(columns, kWidestProse), .rows = columns};
}

}  // namespace stoker::cli
