#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/pipeline/executor.h"
#include "engine/pipeline/thread_census.h"

namespace stoker {

namespace {

class ThreadsExecutor final : public Executor {
 public:
  explicit ThreadsExecutor(int threads) : census_(threads) {
    for (int worker = 0; worker < threads; ++worker) {
      threads_.emplace_back([this, worker] { Run(worker); });
    }
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

  int concurrency() const override { return census_.workers(); }
  const char* name() const override { return "threads"; }
  int threads_seen() const override { return census_.count(); }

 private:
  void Run(int worker) {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Task task = queue_.front();
      queue_.pop_front();
      lock.unlock();
      census_.Note(worker);
      task.run(task.context, task.argument, worker);
      lock.lock();
    }
  }

  ThreadCensus census_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Executor> MakeThreadsExecutor(int threads) {
  return std::make_unique<ThreadsExecutor>(threads);
}

}  // namespace stoker
