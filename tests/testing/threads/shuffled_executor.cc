#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/numbers/random.h"
#include "core/result/try.h"
#include "core/system/start_thread.h"
#include "engine/runtime/threads_seen.h"
#include "tests/testing/threads/executors.h"

namespace stoker::testing {

namespace {

// Waits briefly until several tasks are pending, then runs any one of them under any worker number.
class ShuffledExecutor final : public Executor {
 public:
  ShuffledExecutor(int threads, uint64_t seed) : seen_threads_(threads), random_({seed, 0, 0}, 0) {}

  Status Start() {  // must be called first
    ASSIGN_OR_RETURN(thread_, StartThread("the workers' thread", [this] { Run(); }));
    return {};
  }

  ~ShuffledExecutor() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void Submit(const Task& task) override {
    {
      std::lock_guard lock(mutex_);
      pending_.push_back(task);
    }
    wake_.notify_all();
  }

  int concurrency() const override { return seen_threads_.workers(); }
  const char* name() const override { return "shuffled"; }
  int threads_seen() const override { return seen_threads_.count(); }

 private:
  static constexpr size_t kEnoughPending = 16;
  static constexpr std::chrono::microseconds kPatience{500};

  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return closing_ || !pending_.empty(); });
      if (pending_.empty()) return;
      wake_.wait_for(lock, kPatience,
                     [this] { return closing_ || pending_.size() >= kEnoughPending; });
      std::swap(pending_[random_.Below(pending_.size())], pending_.back());
      const Task task = pending_.back();
      pending_.pop_back();
      const int worker = static_cast<int>(random_.Below(static_cast<uint64_t>(concurrency())));
      lock.unlock();
      seen_threads_.Note(worker);
      task.run(task.context, task.argument, worker);
      lock.lock();
    }
  }

  ThreadsSeen seen_threads_;
  RandomStream random_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> pending_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Executor>> MakeShuffledExecutor(int threads, uint64_t seed) {
  auto executor = std::make_unique<ShuffledExecutor>(threads, seed);
  TRY(executor->Start());
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace stoker::testing
