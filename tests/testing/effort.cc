#include "tests/testing/effort.h"

#include <cstdlib>

namespace stoker::testing {

int Effort(int full) {
  static const bool all = std::getenv("STOKER_FULL_EFFORT") != nullptr;
  return all ? full : (full + 4) / 5;
}

}  // namespace stoker::testing
