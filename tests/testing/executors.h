// What the tests run on. Which executors: all of them, but under the thread sanitizer not TBB's,
// for Debian's libtbb is not instrumented. CMake chooses the source file.
#pragma once

#include <vector>

#include "engine/runtime/executor.h"
#include "engine/runtime/runtime.h"

namespace stoker::testing {

std::vector<ExecutorKind> ExecutorsUnderTest();
ExecutorKind DefaultExecutorUnderTest();

// So many workers, and the simplest reader.
inline RuntimeOptions RuntimeUnderTest(int threads) {
  return {.threads = threads, .reader = ReaderKind::kPread, .executor = DefaultExecutorUnderTest()};
}

}  // namespace stoker::testing
