#include <unistd.h>

#include "engine/runtime/executor.h"

namespace stoker {

namespace {
const pid_t kLoadedBy = getpid();
}  // namespace

// TBB's threads stay in the parent of a fork, and TBB starts no new ones in the child, so submitted
// tasks would never run.
const char* WhyNotTbb() {
  return getpid() == kLoadedBy ? nullptr : "TBB does not work in a forked process";
}

}  // namespace stoker
