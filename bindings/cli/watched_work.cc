#include "bindings/cli/watched_work.h"

#include <fmt/format.h>

namespace stoker::cli {

std::function<bool(uint64_t done, uint64_t total)> WatchedWork::progress() {
  return [this](uint64_t done, uint64_t total) {
    if (bar_.Due()) bar_.Show(done, total, fmt::format("{} of {} {}", done, total, noun_));
    return !interrupt_.interrupted();
  };
}

}  // namespace stoker::cli
