#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "engine/runtime/executor.h"
#include "engine/runtime/threads_seen.h"

namespace stoker {

namespace {

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(int threads)
      : parallelism_(Parallelism::max_allowed_parallelism,
                     std::max(Parallelism::active_value(Parallelism::max_allowed_parallelism),
                              static_cast<size_t>(threads) + 1)),
        arena_(threads, /*reserved_for_masters=*/0),
        seen_threads_(threads) {
    StartThreads();
  }

  ~TbbExecutor() override { AwaitAll(); }

  void Submit(const Task& task) override {
    pending_.fetch_add(1, std::memory_order_relaxed);
    arena_.enqueue([this, task] {
      // An arena for one thread has two slots, only one of which is in use at a time.
      const int worker = tbb::this_task_arena::current_thread_index() % seen_threads_.workers();
      seen_threads_.Note(worker);
      task.run(task.context, task.argument, worker);
      pending_.fetch_sub(1, std::memory_order_release);  // the last touch of this executor
    });
  }

  int concurrency() const override { return seen_threads_.workers(); }
  const char* name() const override { return "tbb"; }
  int threads_seen() const override { return seen_threads_.count(); }

 private:
  using Parallelism = tbb::global_control;

  // TBB starts its threads when there is work, and ends the process if the system has none. So
  // every thread gets work now, because later address space or limits may be used up. Threads come
  // one after another, so the wait for the next one is shorter than for the first.
  void StartThreads() {
    const auto gate = std::make_shared<Gate>();
    const int sent = SendTo(gate);
    std::unique_lock lock(gate->mutex);
    for (int seen = 0; seen < sent; seen = gate->here) {
      const auto patience = std::chrono::milliseconds(seen == 0 ? 1000 : 20);
      if (!gate->changed.wait_for(lock, patience, [&] { return gate->here > seen; })) break;
    }
    gate->open = true;
    gate->changed.notify_all();
  }

  // A thread that arrives late finds the gate open.
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    int here = 0;
    bool open = false;
  };

  // Returns the number of tasks that were sent.
  int SendTo(const std::shared_ptr<Gate>& gate) {
    for (int i = 0; i < seen_threads_.workers(); ++i) {
      pending_.fetch_add(1, std::memory_order_relaxed);
      try {
        arena_.enqueue([this, gate] {
          {
            std::unique_lock lock(gate->mutex);
            ++gate->here;
            gate->changed.notify_all();
            gate->changed.wait(lock, [&] { return gate->open; });
          }
          pending_.fetch_sub(1, std::memory_order_release);  // the last touch of this executor
        });
      } catch (const std::bad_alloc&) {
        pending_.fetch_sub(1, std::memory_order_relaxed);
        return i;
      }
    }
    return seen_threads_.workers();
  }

  void AwaitAll() const {
    while (pending_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }

  Parallelism parallelism_;
  tbb::task_arena arena_;
  ThreadsSeen seen_threads_;
  std::atomic<uint64_t> pending_{0};
};

}  // namespace

std::unique_ptr<Executor> MakeTbbExecutor(int threads) {
  return std::make_unique<TbbExecutor>(threads);
}

}  // namespace stoker
