// Checks what a parser promises for its result, whatever its input.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace stoker::testing {

// Ends the process if `what` does not hold, which a fuzzer reports.
inline void Promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace stoker::testing
