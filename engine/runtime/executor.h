// Executor: runs decode tasks. There are two:
//   TBB       for production: its own arena in oneTBB's scheduler
//   threads   std::threads and one queue, for forked processes and the thread sanitizer, because
//             Debian's libtbb is not instrumented
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result/result.h"

namespace stoker {

// A function pointer with arguments, so that submitting a task allocates nothing in stoker.
// `worker` is in [0, concurrency()), and no two tasks run with the same number at a time: use it as
// an index into scratch memory.
struct Task {
  void (*run)(void* context, uint32_t argument, int worker) = nullptr;
  void* context = nullptr;
  uint32_t argument = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;  // waits until every submitted task has run

  // Thread-safe; never blocks on a task. Tasks submitted first tend to start first.
  virtual void Submit(const Task& task) = 0;

  virtual int concurrency() const = 0;
  virtual const char* name() const = 0;

  // The number of distinct threads that have run a task so far.
  virtual int threads_seen() const = 0;
};

// Returns why TBB cannot be used; nullptr if it can. It cannot in a forked child of the process
// that loaded this library, and in builds with the thread sanitizer. CMake chooses the source file.
const char* WhyNotTbb();

// For its lifetime the executor holds a global_control that allows threads + 1 (and never fewer
// than were allowed before, because TBB takes the smallest of all). Without it, an arena that is
// fed only by enqueue was seen to run on one thread of a machine with two cores. Preconditions:
// WhyNotTbb() is nullptr, and the system can start that many threads, because TBB ends the process
// where it cannot start one. Must not be called on a TBB worker: destruction may wait for it.
std::unique_ptr<Executor> MakeTbbExecutor(int threads);
// Has fewer threads if the system has no more; ResourceExhausted if it has none.
Result<std::unique_ptr<Executor>> MakeThreadsExecutor(int threads);

}  // namespace stoker
