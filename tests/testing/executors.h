// The executors that tests run on: all of them, except TBB's under the thread sanitizer, because
// Debian's libtbb is not instrumented. CMake chooses the source file.
#pragma once

#include <vector>

#include "engine/runtime/executor.h"
#include "engine/runtime/runtime.h"

namespace stoker::testing {

std::vector<ExecutorKind> ExecutorsUnderTest();
ExecutorKind DefaultExecutorUnderTest();

// Options with `threads` workers and the simplest reader.
inline RuntimeOptions RuntimeUnderTest(int threads) {
  return {.threads = threads, .reader = ReaderKind::kPread, .executor = DefaultExecutorUnderTest()};
}

}  // namespace stoker::testing
