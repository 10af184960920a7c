#include "tests/testing/threads/executors.h"

namespace stoker::testing {

std::vector<TestedExecutor> ExecutorsUnderTest() {
  return {TestedExecutor::kTbb, TestedExecutor::kThreads, TestedExecutor::kShuffled};
}

ExecutorKind DefaultExecutorUnderTest() { return ExecutorKind::kTbb; }

}  // namespace stoker::testing
