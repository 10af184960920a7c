#include "bindings/cli/for_each_sample.h"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "core/system/start_thread.h"

namespace stoker {
namespace {

class Loop {
 public:
  Loop(uint64_t samples, const SampleProgress& progress) : samples_(samples), progress_(progress) {}

  // The body of each thread.
  void Run(const std::function<SampleWork()>& make_work) {
    uint64_t id = 0;
    try {
      const SampleWork work = make_work();
      while (!ended_ && (id = next_.fetch_add(1)) < samples_) End(id, work(id));
    } catch (const std::bad_alloc&) {
      End(id, Error{Code::kResourceExhausted, "out of memory"});
    }
  }

  Status Take() && { return std::move(status_); }

 private:
  void End(uint64_t id, Status status) {
    const std::lock_guard lock(mutex_);
    ++done_;
    if (status.ok() && progress_ && !progress_(done_, samples_)) {
      id = samples_;  // any error says more
      status = Error{Code::kCancelled, "stopped before the last sample"};
    }
    if (status.ok()) return;
    ended_ = true;
    if (!status_.ok() && id > of_) return;
    status_ = std::move(status);
    of_ = id;
  }

  const uint64_t samples_;
  const SampleProgress& progress_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  uint64_t done_ = 0;  // under mutex_, as all below
  Status status_;
  uint64_t of_ = 0;  // the id of its sample
};

}  // namespace

Status ForEachSample(uint64_t samples, int threads, const SampleProgress& progress,
                     const std::function<SampleWork()>& make_work) {
  Loop loop(samples, progress);
  InParallel(threads, [&] { loop.Run(make_work); });
  return std::move(loop).Take();
}

}  // namespace stoker
