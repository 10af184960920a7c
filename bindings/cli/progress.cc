#include "bindings/cli/progress.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <string>

#include "bindings/cli/terminal.h"

namespace stoker::cli {

namespace {

constexpr int kWidth = 32;
// Return to the first column and clear the line.
constexpr const char* kWipe = "\r\x1b[K";

}  // namespace

std::string BarText(uint64_t done, uint64_t total) {
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(share * kWidth);
  std::string bar = fmt::format("{:>3}% ", static_cast<int>(share * 100));
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "━" : "─";
  return bar;
}

ProgressBar::ProgressBar() : terminal_(CanRedraw()) {}

ProgressBar::~ProgressBar() {
  if (shown_) fmt::print(stderr, "{}", kWipe);
}

bool ProgressBar::Due() {
  if (!terminal_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return false;
  next_ = now + std::chrono::milliseconds(100);
  return true;
}

void ProgressBar::Show(uint64_t done, uint64_t total, std::string_view note) {
  if (!terminal_) return;
  shown_ = true;
  fmt::print(stderr, "{}{}  {}", kWipe, total == 0 ? std::string() : BarText(done, total), note);
  std::fflush(stderr);
}

}  // namespace stoker::cli
