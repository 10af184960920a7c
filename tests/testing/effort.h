// Effort: the number of cases that an open-ended test tries.
#pragma once

namespace stoker::testing {

// Returns a share of `full`, at least 1: STOKER_EFFORT percent, which is 100 where `./dev test
// --all` tests the release build. Otherwise 20, because a newcomer waits for the results, and under
// a sanitizer everything is many times slower.
int Effort(int full);

}  // namespace stoker::testing
