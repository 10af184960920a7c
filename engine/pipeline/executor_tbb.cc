#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "engine/pipeline/executor.h"
#include "engine/pipeline/thread_census.h"

namespace stoker {

namespace {

const pid_t kLoadedBy = getpid();

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(int threads)
      : parallelism_(Parallelism::max_allowed_parallelism,
                     std::max(Parallelism::active_value(Parallelism::max_allowed_parallelism),
                              static_cast<size_t>(threads) + 1)),
        arena_(threads, /*reserved_for_masters=*/0),
        census_(threads) {
    StartThreads();
  }

  ~TbbExecutor() override { AwaitAll(); }

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

  // TBB starts its threads when there is work, from wherever it is, and ends the process where the
  // system gives none. So all get work at once, now: later address space and limits may be used up.
  // Where its threads are at others' tasks, they are there already: nobody is waited for long.
  void StartThreads() {
    constexpr auto kPatience = std::chrono::milliseconds(20);
    std::mutex mutex;
    std::condition_variable changed;
    int here = 0;
    bool go = false;
    for (int i = 0; i < census_.workers(); ++i) {
      pending_.fetch_add(1, std::memory_order_relaxed);
      arena_.enqueue([&] {
        {
          std::unique_lock lock(mutex);
          ++here;
          changed.notify_all();
          changed.wait(lock, [&] { return go; });
        }
        pending_.fetch_sub(1, std::memory_order_release);
      });
    }
    {
      std::unique_lock lock(mutex);
      for (int seen = -1; seen < here && here < census_.workers();) {
        seen = here;
        changed.wait_for(lock, kPatience, [&] { return here > seen; });
      }
      go = true;
      changed.notify_all();
    }
    AwaitAll();
  }

  void AwaitAll() const {
    while (pending_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }

  Parallelism parallelism_;
  tbb::task_arena arena_;
  ThreadCensus census_;
  std::atomic<uint64_t> pending_{0};
};

}  // namespace

bool TbbWorks() { return getpid() == kLoadedBy; }

std::unique_ptr<Executor> MakeTbbExecutor(int threads) {
  return std::make_unique<TbbExecutor>(threads);
}

}  // namespace stoker
