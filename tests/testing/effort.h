// Effort: the number of cases that an open-ended test tries.
#pragma once

namespace stoker::testing {

// Returns a share of `full`, at least 1: STOKER_EFFORT percent, 1 to 100. ./dev sets 100 for all
// tests of the release build, and 5 under sanitizers, which are ten times slower and find a wrong
// access or a race in the first cases. 20 if it is not set, because a newcomer waits.
int Effort(int full);

}  // namespace stoker::testing
