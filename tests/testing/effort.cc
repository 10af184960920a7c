#include "tests/testing/effort.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace stoker::testing {

namespace {

int Percent() {
  const char* const given = std::getenv("STOKER_EFFORT");  // NOLINT: no thread changes it
  return given == nullptr ? 20 : std::clamp(std::stoi(given), 1, 100);
}

}  // namespace

int Effort(int full) {
  static const int percent = Percent();
  return std::max(1, (full * percent + 99) / 100);
}

}  // namespace stoker::testing
