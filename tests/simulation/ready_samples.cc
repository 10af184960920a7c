#include "tests/simulation/ready_samples.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/memory/memory_budget.h"
#include "engine/production/samples/samples_in_flight.h"
#include "engine/runtime/concurrency_limit.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/simulated_source.h"
#include "tests/torture/soak_job.h"

namespace stoker::testing {

namespace {

constexpr uint32_t kSamples = 200;  // more than a word of the set has bits

class ReadySamples {
 public:
  explicit ReadySamples(uint64_t seed)
      : draw_({seed, 0, 0}),
        rows_(1 + draw_.Below(draw_.Of<uint64_t>({3, 60}))),
        samples_(kSamples, budget_, /*pieces=*/0) {}

  void Run();

 private:
  void Read();
  void Work();
  void Tune();
  void Send(uint32_t tasks);

  Draw draw_;
  const uint64_t rows_;  // of each reader: few, so that a later one seldom makes up for a lost task
  MemoryBudget budget_{uint64_t{1} << 40};
  SamplesInFlight samples_;
  ConcurrencyLimit limit_{1};
  std::atomic<uint64_t> claimed_{0};  // rows, in the order in which they are needed
  std::atomic<uint64_t> taken_{0};    // samples
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t tasks_ = 0;  // this and the following: under mutex_
  bool ended_ = false;
};

void ReadySamples::Read() {
  for (uint64_t row = 0; row < rows_; ++row) {
    std::optional<uint32_t> index = samples_.Take();
    for (uint64_t wait_ns = 1000; !index; index = samples_.Take()) {
      SimulateWork(wait_ns);
      wait_ns = std::min<uint64_t>(2 * wait_ns, 1'000'000);  // workers may be suspended for long
    }
    samples_[*index].claim.batch = claimed_.fetch_add(1);
    samples_.SetReady(*index);
    Send(1);
  }
}

void ReadySamples::Send(uint32_t tasks) {
  const std::lock_guard lock(mutex_);
  tasks_ += tasks;
  changed_.notify_all();
}

void ReadySamples::Tune() {
  for (int i = 0; i < 20; ++i) {
    Send(limit_.SetLimit(1 + static_cast<uint32_t>(Scheduler::Running()->Below(3))));
  }
}

void ReadySamples::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || tasks_ > 0; });
    if (tasks_ == 0) return;
    --tasks_;
    lock.unlock();
    if (limit_.Enter()) {
      std::optional<uint32_t> taken = samples_.TakeReady();  // none if the task is surplus
      for (int more = 3; taken; --more) {
        samples_.Give(*taken);
        ++taken_;
        taken = more > 0 ? samples_.TakeFurther(2) : std::nullopt;
      }
      if (limit_.Leave()) Send(1);
    }
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
  Tune();
  for (std::thread& reader : readers) reader.join();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers) worker.join();
  if (taken_ == claimed_) return;
  Scheduler::Running()->Fail(std::to_string(claimed_ - taken_) +
                             " samples are left without a worker");
}

}  // namespace

void RunReadySamples(uint64_t seed) { ReadySamples(seed).Run(); }

}  // namespace stoker::testing
