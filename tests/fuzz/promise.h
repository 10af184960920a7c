// What a parser promises of what it returns, whatever it was given.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace stoker::testing {

// Ends the process if `what` is not so: a finding, for a fuzzer.
inline void Promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace stoker::testing
