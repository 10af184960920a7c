#include "bindings/cli/live_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "engine/core/stage_times.h"

namespace stoker::cli {

namespace {

constexpr uint64_t kRedrawNs = 250'000'000;
constexpr uint64_t kLineNs = 5'000'000'000;

size_t Columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// The first characters of a line of UTF-8, each of which takes one column.
std::string_view Cut(std::string_view line, size_t columns) {
  size_t at = 0;
  for (size_t column = 0; at < line.size() && column < columns; ++column) {
    do ++at;
    while (at < line.size() && Continues(line[at]));
  }
  return line.substr(0, at);
}

}  // namespace

std::string Redraw(int drawn, std::string_view lines, size_t columns) {
  std::string text = "\r";
  if (drawn > 0) text += fmt::format("\x1b[{}A", drawn);
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    // Wiped line by line: less flickers than where all are wiped first.
    text += fmt::format("{}\x1b[K\n", Cut(lines.substr(0, end), columns - 1));
    lines = end == std::string_view::npos ? "" : lines.substr(end + 1);
  }
  return text + "\x1b[J";
}

LiveView::LiveView() : terminal_(isatty(STDERR_FILENO) == 1) {}

LiveView::~LiveView() {
  if (drawn_ != 0) fmt::print(stderr, "{}", Redraw(drawn_, "", 80));
}

void LiveView::Show(std::string_view head, const std::function<LoaderStats()>& stats) {
  const uint64_t now = NowNanoseconds();
  if (now < next_ns_) return;
  next_ns_ = now + (terminal_ ? kRedrawNs : kLineNs);
  recent_.Add(stats(), now);
  if (terminal_) {
    const std::string lines = fmt::format("{}\n{}", head, recent_.panel());
    fmt::print(stderr, "{}", Redraw(drawn_, lines, Columns()));
    drawn_ = static_cast<int>(std::ranges::count(lines, '\n'));
  } else if (const std::string line = recent_.line(); !line.empty()) {
    fmt::print(stderr, "stoker: {}: {}\n", head, line);
  }
  std::fflush(stderr);
}

}  // namespace stoker::cli
