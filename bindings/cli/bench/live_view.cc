#include "bindings/cli/bench/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "bindings/cli/text/terminal.h"
#include "bindings/cli/text/text_layout.h"
#include "core/time/stage_times.h"

namespace stoker::cli {

namespace {

constexpr uint64_t kRedrawNs = 250'000'000;
constexpr uint64_t kLineNs = 5'000'000'000;

}  // namespace

std::string FirstLines(std::string_view lines, size_t most) {
  size_t end = 0;
  for (size_t i = 0; i < most && end < lines.size(); ++i) {
    end = std::min(lines.find('\n', end), lines.size() - 1) + 1;
  }
  return std::string(lines.substr(0, end));
}

std::string Redraw(int drawn, std::string_view lines) {
  std::string text = "\r";
  if (drawn > 0) text += fmt::format("\x1b[{}A", drawn);
  // Cleared line by line, which flickers less than clearing everything first.
  while (!lines.empty()) text += fmt::format("{}\x1b[K\n", TakeLine(lines));
  return text + "\x1b[J";
}

LiveView::LiveView() : terminal_(CanRedraw()) {}

LiveView::~LiveView() {
  if (drawn_ != 0) fmt::print(stderr, "{}", Redraw(drawn_, ""));
}

void LiveView::Show(std::string_view head, const std::function<LoaderStats()>& stats) {
  const uint64_t now = NowNanoseconds();
  if (now < next_ns_) return;
  next_ns_ = now + (terminal_ ? kRedrawNs : kLineNs);
  recent_.Add(stats(), now);
  if (terminal_) {
    const TerminalSize size = SizeOfTerminal();
    std::string lines = BreakLines(fmt::format("{}\n{}", head, recent_.panel()), size.columns - 1);
    lines = FirstLines(lines, size.rows - 1);  // the cursor is below them
    fmt::print(stderr, "{}", Redraw(drawn_, lines));
    drawn_ = static_cast<int>(std::ranges::count(lines, '\n'));
  } else if (const std::string line = recent_.line(); !line.empty()) {
    fmt::print(stderr, "stoker: {}: {}\n", head, line);
  }
  std::fflush(stderr);
}

}  // namespace stoker::cli
