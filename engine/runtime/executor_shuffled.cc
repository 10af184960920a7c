#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/random.h"
#include "core/start_thread.h"
#include "core/try.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/thread_census.h"

namespace stoker {

namespace {

// Waits briefly until several tasks are pending, then runs any one of them under any worker number.
class ShuffledExecutor final : public Executor {
 public:
  ShuffledExecutor(int threads, uint64_t seed) : census_(threads), random_({seed, 0, 0}, 0) {}

  Status Start() {  // must be called first
    Result<std::thread> thread = StartThread("the workers' thread", [this] { Run(); });
    if (!thread.ok()) return std::move(thread).error();
    thread_ = *std::move(thread);
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
      pile_.push_back(task);
    }
    wake_.notify_all();
  }

  int concurrency() const override { return census_.workers(); }
  const char* name() const override { return "shuffled"; }
  int threads_seen() const override { return census_.count(); }

 private:
  static constexpr size_t kPile = 16;
  static constexpr std::chrono::microseconds kPatience{500};

  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return closing_ || !pile_.empty(); });
      if (pile_.empty()) return;
      wake_.wait_for(lock, kPatience, [this] { return closing_ || pile_.size() >= kPile; });
      std::swap(pile_[random_.Below(pile_.size())], pile_.back());
      const Task task = pile_.back();
      pile_.pop_back();
      const int worker = static_cast<int>(random_.Below(static_cast<uint64_t>(concurrency())));
      lock.unlock();
      census_.Note(worker);
      task.run(task.context, task.argument, worker);
      lock.lock();
    }
  }

  ThreadCensus census_;
  RandomStream random_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> pile_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Executor>> MakeShuffledExecutor(int threads, uint64_t seed) {
  auto executor = std::make_unique<ShuffledExecutor>(threads, seed);
  TRY(executor->Start());
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace stoker
