#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

#include "engine/pipeline/executor.h"
#include "engine/pipeline/thread_census.h"

namespace stoker {

namespace {

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(int threads)
      : parallelism_(Parallelism::max_allowed_parallelism,
                     std::max(Parallelism::active_value(Parallelism::max_allowed_parallelism),
                              static_cast<size_t>(threads) + 1)),
        arena_(threads, /*reserved_for_masters=*/0),
        census_(threads) {}

  ~TbbExecutor() override {
    while (pending_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }

  void Submit(const Task& task) override {
    pending_.fetch_add(1, std::memory_order_relaxed);
    arena_.enqueue([this, task] {
      // An arena for one thread has two slots, of which one is in use at a time.
      const int worker = tbb::this_task_arena::current_thread_index() % census_.workers();
      census_.Note(worker);
      task.run(task.context, task.argument, worker);
      pending_.fetch_sub(1, std::memory_order_release);  // the last touch of this executor
    });
  }

  int concurrency() const override { return census_.workers(); }
  const char* name() const override { return "tbb"; }
  int threads_seen() const override { return census_.count(); }

 private:
  using Parallelism = tbb::global_control;

  Parallelism parallelism_;
  tbb::task_arena arena_;
  ThreadCensus census_;
  std::atomic<uint64_t> pending_{0};
};

}  // namespace

std::unique_ptr<Executor> MakeTbbExecutor(int threads) {
  return std::make_unique<TbbExecutor>(threads);
}

}  // namespace stoker
