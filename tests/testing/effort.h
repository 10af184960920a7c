// Effort: the number of cases that an open-ended test tries.
#pragma once

namespace stoker::testing {

// Returns a share of `full`, at least 1: STOKER_EFFORT percent, 1 to 100. 20 if it is not set,
// because a newcomer waits. `./dev test --all` sets 10, and 5 under sanitizers, which are ten times
// slower and find a wrong access or a race in the first cases.
int Effort(int full);

}  // namespace stoker::testing
