#include "tests/testing/executors.h"

namespace stoker::testing {

std::vector<ExecutorKind> ExecutorsUnderTest() {
  return {ExecutorKind::kThreads, ExecutorKind::kShuffled};
}

ExecutorKind DefaultExecutorUnderTest() { return ExecutorKind::kThreads; }

}  // namespace stoker::testing
