// How much a test does of what it could do without end.
#pragma once

namespace stoker::testing {

// `full`, or less where a sanitizer makes everything many times slower: there memory is what is
// looked at, and the results are those of the other builds.
int Effort(int full);

}  // namespace stoker::testing
