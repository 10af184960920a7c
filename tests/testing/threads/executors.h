// The executors that tests run on: all of them, except TBB's under the thread sanitizer, because
// Debian's libtbb is not instrumented.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/runtime/executor.h"
#include "engine/runtime/runtime.h"

namespace stoker::testing {

// The product's executors, and one thread that runs pending tasks in a seeded random order, to find
// races and hidden dependences on order.
enum class TestedExecutor : uint8_t { kTbb, kThreads, kShuffled };

std::vector<TestedExecutor> ExecutorsUnderTest();

// Runs tasks as if `threads` workers had raced: on one thread, in an order drawn from `seed`.
// Errors: ResourceExhausted.
Result<std::unique_ptr<Executor>> MakeShuffledExecutor(int threads, uint64_t seed);

// `seed`: of the shuffled executor.
void SetExecutor(TestedExecutor executor, RuntimeOptions& options, uint64_t seed = 0);

// Options with `threads` workers and the simplest reader.
inline RuntimeOptions RuntimeUnderTest(int threads) {
  return {.threads = threads, .reader = ReaderKind::kPread};
}

}  // namespace stoker::testing
