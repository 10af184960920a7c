#include "io/annotations/coco_runs.h"

#include <cstddef>

namespace stoker {

bool UnpackRuns(std::string_view text, std::vector<uint32_t>& runs) {
  constexpr int kFirst = 48, kLast = kFirst + 63;  // characters
  constexpr int kMostBits = 40;                    // of a run; more than any image needs
  const size_t before = runs.size();
  for (size_t at = 0; at < text.size();) {
    int64_t run = 0;
    for (int bits = 0;; bits += 5) {
      if (at == text.size() || bits == kMostBits) return false;
      const int code = static_cast<unsigned char>(text[at++]);
      if (code < kFirst || code > kLast) return false;
      const int64_t five = code - kFirst;
      run |= (five & 31) << bits;
      if ((five & 32) != 0) continue;
      if ((five & 16) != 0) run -= int64_t{32} << bits;
      break;
    }
    const size_t count = runs.size() - before;
    if (count > 2) run += runs[runs.size() - 2];
    if (run < 0 || run > UINT32_MAX) return false;
    runs.push_back(static_cast<uint32_t>(run));
  }
  return true;
}

}  // namespace stoker
