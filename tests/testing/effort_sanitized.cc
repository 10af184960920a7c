#include "tests/testing/effort.h"

namespace stoker::testing {

int Effort(int full) { return (full + 4) / 5; }

}  // namespace stoker::testing
