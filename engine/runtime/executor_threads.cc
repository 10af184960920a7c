#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "core/system/start_thread.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/threads_seen.h"

namespace stoker {

namespace {

class ThreadsExecutor final : public Executor {
 public:
  explicit ThreadsExecutor(int threads) : seen_threads_(threads) {
    threads_.reserve(static_cast<size_t>(threads));
  }

  // Must be called first. If not all threads can be started, the executor runs with those it has.
  Status Start() {
    for (int worker = 0; worker < seen_threads_.workers(); ++worker) {
      Result<std::thread> thread =
          StartThread("a worker's thread", [this, worker] { Run(worker); });
      if (!thread.ok() && threads_.empty()) return std::move(thread).error();
      if (!thread.ok()) break;
      threads_.push_back(*std::move(thread));
    }
    return {};
  }

  ~ThreadsExecutor() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Submit(const Task& task) override {
    {
      std::lock_guard lock(mutex_);
      queue_.push_back(task);
    }
    wake_.notify_one();
  }

  int concurrency() const override { return static_cast<int>(threads_.size()); }
  const char* name() const override { return "threads"; }
  int threads_seen() const override { return seen_threads_.count(); }

 private:
  void Run(int worker) {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Task task = queue_.front();
      queue_.pop_front();
      lock.unlock();
      seen_threads_.Note(worker);
      task.run(task.context, task.argument, worker);
      lock.lock();
    }
  }

  ThreadsSeen seen_threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Executor>> MakeThreadsExecutor(int threads) {
  auto executor = std::make_unique<ThreadsExecutor>(threads);
  TRY(executor->Start());
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace stoker
