// Panel: the current activity of a loader in a few lines of text, for a terminal, notebook or log.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "engine/metrics/stats.h"

namespace stoker {

// Describes the activity between two snapshots, `seconds` apart, in lines of UTF-8:
//
//   3412 samples/s   waited 41%: decode 38%, storage 3%
//   depth 4   workers 2   reads 32   memory 112 of 964 MiB
//   busy 93% ██▇▇
//
// followed by a line with the tuner's last decision and one with advice, if there are any. Each
// line ends with a line feed.
std::string Panel(const LoaderStats& before, const LoaderStats& now, double seconds);

// The same in one line, for a log; without a line feed.
std::string PanelLine(const LoaderStats& before, const LoaderStats& now, double seconds);

// Keeps the snapshots of the last seconds, so that figures are averages and readable. Not
// thread-safe.
class RecentStats {
 public:
  static constexpr uint64_t kWindowNs = 2'000'000'000;

  // Precondition: `now_ns` does not decrease.
  void Add(LoaderStats now, uint64_t now_ns);

  // The activity since the oldest snapshot kept; empty before the second one.
  std::string panel() const;
  std::string line() const;

 private:
  double seconds() const;

  std::deque<std::pair<uint64_t, LoaderStats>> looks_;
};

}  // namespace stoker
