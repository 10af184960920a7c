#include "tests/simulation/ready_samples.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/memory_budget.h"
#include "engine/loader/samples_in_flight.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/simulated_source.h"
#include "tests/torture/soak_job.h"

namespace stoker::testing {

namespace {

constexpr uint32_t kSamples = 200;  // more than a word of the set has bits

class ReadySamples {
 public:
  explicit ReadySamples(uint64_t seed) : draw_({seed, 0, 0}), samples_(kSamples, budget_, true) {}

  void Run();

 private:
  void Read();
  void Work();

  Draw draw_;
  MemoryBudget budget_{uint64_t{1} << 40};
  SamplesInFlight samples_;
  std::atomic<uint64_t> claimed_{0};  // rows, in the order in which they are needed
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t tasks_ = 0;  // this and the following: under mutex_
  bool ended_ = false;
};

void ReadySamples::Read() {
  constexpr uint64_t kRows = 60;
  for (uint64_t row = 0; row < kRows; ++row) {
    std::optional<uint32_t> index = samples_.Take();
    for (; !index; index = samples_.Take()) SimulateWork(1000);
    samples_[*index].ticket.batch = claimed_.fetch_add(1);
    samples_.SetReady(*index);
    const std::lock_guard lock(mutex_);
    ++tasks_;
    changed_.notify_one();
  }
}

void ReadySamples::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || tasks_ > 0; });
    if (tasks_ == 0) return;
    --tasks_;
    lock.unlock();
    const std::optional<uint32_t> taken = samples_.TakeReady();
    if (!taken) Scheduler::Running()->Fail("a worker finds no sample: its task's is left behind");
    samples_.Give(*taken);
    lock.lock();
  }
}

void ReadySamples::Run() {
  // A few samples are free, in different words.
  std::vector<uint32_t> all;
  while (const std::optional<uint32_t> index = samples_.Take()) all.push_back(*index);
  for (int i = 0; i < 6; ++i) {
    const size_t chosen = draw_.Below(all.size());
    samples_.Give(all[chosen]);
    all.erase(all.begin() + static_cast<ptrdiff_t>(chosen));
  }
  std::vector<std::thread> readers, workers;
  for (uint64_t i = 1 + draw_.Below(2); i > 0; --i) readers.emplace_back([this] { Read(); });
  for (uint64_t i = 1 + draw_.Below(3); i > 0; --i) workers.emplace_back([this] { Work(); });
  for (std::thread& reader : readers) reader.join();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers) worker.join();
}

}  // namespace

void RunReadySamples(uint64_t seed) { ReadySamples(seed).Run(); }

}  // namespace stoker::testing
