#include "bindings/cli/watched_work.h"

namespace stoker::cli {

std::function<bool(uint64_t done, uint64_t total)> WatchedWork::progress() {
  return [this](uint64_t done, uint64_t total) {
    bar_.Show({.done = done, .total = total, .samples = done});
    return !interrupt_.interrupted();
  };
}

}  // namespace stoker::cli
