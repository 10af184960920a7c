#include "tests/testing/executors.h"

namespace stoker::testing {

std::vector<ExecutorKind> ExecutorsUnderTest() {
  return {ExecutorKind::kTbb, ExecutorKind::kThreads, ExecutorKind::kShuffled};
}

ExecutorKind DefaultExecutorUnderTest() { return ExecutorKind::kTbb; }

}  // namespace stoker::testing
