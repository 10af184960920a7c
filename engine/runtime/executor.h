// Where decoding runs. One small interface, three executors:
//   TBB       production: an arena of its own in oneTBB's scheduler
//   threads   plain std::threads and one queue: what the thread sanitizer runs on, since Debian's
//             libtbb is not instrumented
//   shuffled  one thread that runs what is pending in a seeded random order: hunts races and
//             hidden dependence on order
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.h"

namespace stoker {

// A plain function call, so that submitting one costs stoker no allocation. `worker` is in
// [0, concurrency()) and no two tasks run with the same one at a time: an index into scratch.
struct Task {
  void (*run)(void* context, uint32_t argument, int worker) = nullptr;
  void* context = nullptr;
  uint32_t argument = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;  // waits until every submitted task has run

  // Any thread; never blocks on a task. Tasks submitted first tend to start first.
  virtual void Submit(const Task& task) = 0;

  virtual int concurrency() const = 0;
  virtual const char* name() const = 0;

  // How many distinct threads have run a task so far.
  virtual int threads_seen() const = 0;
};

enum class ExecutorKind { kTbb, kThreads, kShuffled };

// False in a forked child of the process that loaded this library: TBB's threads, which anybody may
// have used, stayed in the parent, and it starts no others. What is submitted would never run.
bool TbbWorks();

// TBB: holds a global_control for its lifetime that allows threads + 1 (never fewer than were
// allowed before, for TBB takes the smallest of all): without it an arena that is fed only by
// enqueue was seen to run on one thread of a machine with two cores. Preconditions: TbbWorks(), and
// so many threads are to be had, for TBB ends the process where it cannot start one. Not to be made
// on a worker of TBB's, for its end may wait for that one.
std::unique_ptr<Executor> MakeTbbExecutor(int threads);
// Has fewer threads where the system gives no more, but one at least: else ResourceExhausted.
Result<std::unique_ptr<Executor>> MakeThreadsExecutor(int threads);
// Runs tasks as if `threads` workers had raced: on one thread, in an order drawn from `seed`.
// ResourceExhausted.
Result<std::unique_ptr<Executor>> MakeShuffledExecutor(int threads, uint64_t seed);

}  // namespace stoker
