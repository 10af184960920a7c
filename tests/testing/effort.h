// Effort: the number of cases that an open-ended test tries.
#pragma once

namespace stoker::testing {

// Returns `full` if STOKER_FULL_EFFORT is set, as `./dev test --all` does for the release build;
// otherwise a fifth, because a newcomer waits for the results, and under a sanitizer everything is
// many times slower.
int Effort(int full);

}  // namespace stoker::testing
