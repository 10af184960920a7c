// LiveView: shows the current activity of a loader, on a terminal or in a log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/metrics/panel.h"
#include "engine/metrics/stats.h"

namespace stoker::cli {

// Writes to stderr: if CanRedraw() (terminal.h), a few lines that are redrawn in place, four times
// a second; otherwise a line every five seconds. One thread at a time.
class LiveView {
 public:
  LiveView();
  ~LiveView();  // clears the terminal's lines
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  // Shows `head` and the stats if a redraw is due; calls `stats` only then.
  void Show(std::string_view head, const std::function<LoaderStats()>& stats);

 private:
  const bool terminal_;
  uint64_t next_ns_ = 0;
  int drawn_ = 0;  // lines above the cursor
  RecentStats recent_;
};

// Returns at most `most` lines: lines that have scrolled off the screen cannot be redrawn.
std::string FirstLines(std::string_view lines, size_t most);

// Returns the text that replaces the `drawn` lines above the cursor by `lines`, each of which fits.
std::string Redraw(int drawn, std::string_view lines);

}  // namespace stoker::cli
