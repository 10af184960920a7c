// Which executors the tests run on: all of them, but under the thread sanitizer not TBB's, for
// Debian's libtbb is not instrumented. CMake chooses the source file.
#pragma once

#include <vector>

#include "engine/pipeline/executor.h"

namespace stoker::testing {

std::vector<ExecutorKind> ExecutorsUnderTest();
ExecutorKind DefaultExecutorUnderTest();

}  // namespace stoker::testing
