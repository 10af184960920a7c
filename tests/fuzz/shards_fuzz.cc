// libFuzzer's entry point; see README.md for how to run it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/open/open_tar.h"

namespace {

// Returns whether a pattern has more than 12 braces, or a number of 3 to 18 digits: it may stand
// for that many paths that it takes seconds under a sanitizer. The replay test runs those of the
// corpus. Longer numbers are refused.
bool IsLarge(std::span<const uint8_t> pattern) {
  if (std::ranges::count(pattern, '{') > 12) return true;
  size_t digits = 0;
  for (size_t at = 0; at <= pattern.size(); ++at) {
    if (at < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9') {
      ++digits;
    } else {
      if (digits >= 3 && digits <= 18) return true;
      digits = 0;
    }
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!IsLarge({data, size})) stoker::testing::ExpandFuzzedShards({data, size});
  return 0;
}
