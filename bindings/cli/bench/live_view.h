// What a loader does now, on a terminal or in a log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/watching/panel.h"
#include "engine/watching/stats.h"

namespace stoker::cli {

// On stderr: where CanRedraw() (terminal.h) a few lines that are redrawn in place, four times a
// second; else a line every five seconds. One thread at a time.
class LiveView {
 public:
  LiveView();
  ~LiveView();  // wipes what is on the terminal
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  // Shows it, with `head` above or before it, where it is time to; asks for stats only then.
  void Show(std::string_view head, const std::function<LoaderStats()>& stats);

 private:
  const bool terminal_;
  uint64_t next_ns_ = 0;
  int drawn_ = 0;  // lines above the cursor
  RecentStats recent_;
};

// Lines of UTF-8 that are no wider than `columns`: longer ones are broken, at a space if there is
// one. A character takes a column.
std::string Broken(std::string_view lines, size_t columns);

// At most `most` lines: what has scrolled off the screen cannot be redrawn.
std::string FirstLines(std::string_view lines, size_t most);

// What puts `lines`, each of which fits, in place of the `drawn` ones above the cursor.
std::string Redraw(int drawn, std::string_view lines);

}  // namespace stoker::cli
