// Shows the progress of a command that goes through many samples, until Ctrl-C.
#pragma once

#include <cstdint>
#include <functional>

#include "bindings/cli/interrupt.h"
#include "bindings/cli/text/progress.h"

namespace stoker::cli {

// At most one per process at a time, like InterruptGuard.
class WatchedWork {
 public:
  // Shows progress, from one thread at a time; false once the command is to end. Valid as long as
  // this object.
  std::function<bool(uint64_t done, uint64_t total)> progress();

 private:
  ProgressBar bar_;
  const InterruptGuard interrupt_;
};

}  // namespace stoker::cli
