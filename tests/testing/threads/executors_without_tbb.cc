#include "tests/testing/threads/executors.h"

namespace stoker::testing {

std::vector<TestedExecutor> ExecutorsUnderTest() {
  return {TestedExecutor::kThreads, TestedExecutor::kShuffled};
}

ExecutorKind DefaultExecutorUnderTest() { return ExecutorKind::kThreads; }

}  // namespace stoker::testing
