#include "tests/testing/threads/executors.h"

namespace stoker::testing {

std::vector<TestedExecutor> ExecutorsUnderTest() {
  if (WhyNotTbb() != nullptr) return {TestedExecutor::kThreads, TestedExecutor::kShuffled};
  return {TestedExecutor::kTbb, TestedExecutor::kThreads, TestedExecutor::kShuffled};
}

void SetExecutor(TestedExecutor executor, RuntimeOptions& options, uint64_t seed) {
  options.executor =
      executor == TestedExecutor::kThreads ? ExecutorKind::kThreads : ExecutorKind::kTbb;
  if (executor == TestedExecutor::kShuffled) {
    options.make_executor = [seed](int threads) { return MakeShuffledExecutor(threads, seed); };
  }
}

}  // namespace stoker::testing
