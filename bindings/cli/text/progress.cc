#include "bindings/cli/text/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "bindings/cli/text/terminal.h"
#include "bindings/cli/text/text_layout.h"

namespace stoker::cli {

namespace {

using namespace std::chrono_literals;

constexpr int kWidth = 24;
// Return to the first column and clear the line.
constexpr const char* kWipe = "\r\x1b[K";
constexpr auto kWindow = 10s;
constexpr auto kLeast = 1s;  // of the window, for a rate

double SecondsOf(Pace::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// Returns "40 s", "12 min", "5 h 20 min" or "3 days".
std::string LongDuration(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86'400;
  if (seconds < 100) return fmt::format("{:.0f} s", std::max(seconds, 1.0));
  if (seconds < 100 * kMinute) return fmt::format("{:.0f} min", seconds / kMinute);
  if (seconds >= 2 * kDay) return fmt::format("{:.0f} days", std::min(seconds / kDay, 1e6));
  const auto minutes = static_cast<int>(seconds / kMinute);
  return fmt::format("{} h {} min", static_cast<int>(seconds / kHour), minutes % 60);
}

}  // namespace

void Pace::Add(Clock::time_point now, const Progress& progress) {
  const bool gap = !observations_.empty() && now - observations_.back().when > kWindow;
  // A second gap in a row is not a pause: samples take that long.
  if (gap && !after_gap_) observations_.clear();
  after_gap_ = gap;
  observations_.push_back({now, progress});
  while (observations_.size() > 2 && observations_[1].when + kWindow <= now)
    observations_.pop_front();
  const Observation& first = observations_.front();
  if (now - first.when < kLeast) return;
  const double seconds = SecondsOf(now - first.when);
  samples_per_second_ = static_cast<double>(progress.samples - first.progress.samples) / seconds;
  done_per_second_ = static_cast<double>(progress.done - first.progress.done) / seconds;
}

std::optional<double> Pace::seconds_left() const {
  if (observations_.empty() || done_per_second_ <= 0) return std::nullopt;
  const Progress& last = observations_.back().progress;
  if (last.total == 0) return std::nullopt;
  return static_cast<double>(last.total - std::min(last.done, last.total)) / done_per_second_;
}

std::string BarText(uint64_t done, uint64_t total) {
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(share * kWidth);
  std::string bar = fmt::format("{:>3}% ", static_cast<int>(share * 100));
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "━" : "─";
  return bar;
}

std::string RateText(const Pace& pace) {
  const std::optional<double> rate = pace.samples_per_second();
  if (!rate) return "";
  if (*rate > 0 && *rate < 1) return fmt::format(", {:.1f} samples/min", *rate * 60);
  return fmt::format(", {:.{}f} samples/s", *rate, *rate > 0 && *rate < 9.95 ? 1 : 0);
}

std::string LeftText(const Pace& pace) {
  const std::optional<double> seconds = pace.seconds_left();
  return seconds ? fmt::format(", {} left", LongDuration(*seconds)) : "";
}

ProgressBar::ProgressBar() : terminal_(CanRedraw()) {}

ProgressBar::~ProgressBar() {
  if (shown_) fmt::print(stderr, "{}", kWipe);
}

bool ProgressBar::Due() {
  if (!terminal_) return false;
  const auto now = Pace::Clock::now();
  if (now < next_) return false;
  next_ = now + 100ms;
  return true;
}

void ProgressBar::Draw(std::string_view line) {
  shown_ = true;
  // A line that the terminal breaks could not be wiped.
  fmt::print(stderr, "{}{}", kWipe, FirstColumns(line, SizeOfTerminal().columns - 1));
  std::fflush(stderr);
}

void ProgressBar::Show(const Progress& progress, std::string_view where) {
  if (!Due()) return;
  pace_.Add(Pace::Clock::now(), progress);
  const bool counted = progress.done == progress.samples && progress.total > 0;
  Draw(fmt::format(
      "{}  {}{}{}{} samples{}{}", progress.total == 0 ? "" : BarText(progress.done, progress.total),
      where, where.empty() ? "" : ", ", progress.samples,
      counted ? fmt::format(" of {}", progress.total) : "", RateText(pace_), LeftText(pace_)));
}

void ProgressBar::Say(std::string_view what) {
  if (!Due() && what == said_) return;
  said_ = what;
  if (terminal_) Draw(said_);
}

}  // namespace stoker::cli
