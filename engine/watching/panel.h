// What a loader does now, in a few lines of text: for a terminal, a notebook, a log.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "engine/watching/stats.h"

namespace stoker {

// What was done between two looks, `seconds` apart. Lines of UTF-8, each with its line feed:
//
//   3412 images/s   waited 41%: decode 38%, storage 3%
//   depth 4   workers 2   reads 32   memory 112 of 964 MiB
//   busy 93% ██▇▇
//
// and where there are such, a line with the tuner's last decision, and one with advice.
std::string Panel(const LoaderStats& before, const LoaderStats& now, double seconds);

// The same in one line, for a log; without a line feed.
std::string PanelLine(const LoaderStats& before, const LoaderStats& now, double seconds);

// The looks of the last seconds, so that figures are means over them and can be read. One thread at
// a time.
class RecentStats {
 public:
  static constexpr uint64_t kWindowNs = 2'000'000'000;

  // Looks come in order of time.
  void Add(LoaderStats now, uint64_t now_ns);

  // Since the oldest look kept; empty before the second.
  std::string panel() const;
  std::string line() const;

 private:
  double seconds() const;

  std::deque<std::pair<uint64_t, LoaderStats>> looks_;
};

}  // namespace stoker
