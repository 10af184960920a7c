// ProgressBar: a progress line on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace stoker::cli {

// Returns a text like " 37% ━━━━───────". Precondition: `total` > 0.
std::string BarText(uint64_t done, uint64_t total);

// Draws on stderr, and only if CanRedraw() (terminal.h), so that nothing ends up in a log. One
// thread at a time.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // clears the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Whether it is time to show progress: at most ten times a second, never without a terminal.
  bool Due();

  // Shows `done` of `total` (0: unknown), and a note. Does nothing without a terminal.
  void Show(uint64_t done, uint64_t total, std::string_view note);

 private:
  const bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace stoker::cli
