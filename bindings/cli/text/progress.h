// ProgressBar: a progress line on a terminal, with the rate and the time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::cli {

struct Progress {
  uint64_t done = 0;
  uint64_t total = 0;    // in the unit of `done`; 0 if unknown
  uint64_t samples = 0;  // so far; they may be the unit
};

// The rate of the last seconds, and the time left at that rate. A pause of the whole program
// (Ctrl-Z, a machine that slept) does not count: one gap longer than the window is left out, and a
// second one directly after it is taken for slow samples.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  // Precondition: `now` does not decrease.
  void Add(Clock::time_point now, const Progress& progress);

  // Nullopt in the first second.
  std::optional<double> samples_per_second() const { return samples_per_second_; }
  // Nullopt while there is no progress, and if the total is unknown.
  std::optional<double> seconds_left() const;

 private:
  struct Observation {
    Clock::time_point when;
    Progress progress;
  };

  std::deque<Observation> observations_;  // of the window
  bool after_gap_ = false;
  std::optional<double> samples_per_second_;
  double done_per_second_ = 0;
};

// Returns a text like " 37% ━━━━───────". Precondition: `total` > 0.
std::string BarText(uint64_t done, uint64_t total);

// Return ", 523 samples/s" and ", 40 s left"; empty if unknown.
std::string RateText(const Pace& pace);
std::string LeftText(const Pace& pace);

// Draws on stderr, and only if CanRedraw() (terminal.h), so that nothing ends up in a log. One
// thread at a time.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // clears the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Shows the progress, with `where` before the number of samples ("epoch 2 of 3"). Redraws at most
  // ten times a second; does nothing without a terminal.
  void Show(const Progress& progress, std::string_view where = "");

  // Shows what is being done, at once if it is new. Does nothing without a terminal.
  void Say(std::string_view what);

 private:
  bool Due();
  void Draw(std::string_view line);

  const bool terminal_;
  std::string said_;
  bool shown_ = false;
  Pace pace_;
  Pace::Clock::time_point next_{};
};

}  // namespace stoker::cli
