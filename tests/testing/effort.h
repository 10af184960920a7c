// How much a test does of what it could do without end.
#pragma once

namespace stoker::testing {

// `full` where STOKER_FULL_EFFORT is set, as `./dev test --all` does for the release build; else a
// fifth: a newcomer waits for the results, and under a sanitizer everything is many times slower.
int Effort(int full);

}  // namespace stoker::testing
