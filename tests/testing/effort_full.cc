#include "tests/testing/effort.h"

namespace stoker::testing {

int Effort(int full) { return full; }

}  // namespace stoker::testing
