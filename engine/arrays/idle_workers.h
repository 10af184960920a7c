// IdleWorkers: keeps what one call works with for the next calls.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace stoker {

// Has one worker for each call that runs at the same time, except workers whose memory has grown
// large. Worker::memory() is the bytes of the budget that it holds. Thread-safe. Works in a forked
// child, unless another thread of the parent was in a call.
template <typename Worker>
class IdleWorkers {
 public:
  static constexpr uint64_t kKeptBytes = uint64_t{32} << 20;  // a worker that holds more is freed

  // Lends a worker to one thread, for its own lifetime.
  class Lent {
   public:
    // `make`: returns a new worker, for when none is idle.
    template <typename Make>
    Lent(IdleWorkers& from, const Make& make) : from_(from), worker_(from.Take()) {
      if (worker_ == nullptr) worker_ = make();
    }
    ~Lent() { from_.Return(std::move(worker_)); }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

    Worker& operator*() const { return *worker_; }
    Worker* operator->() const { return worker_.get(); }

   private:
    IdleWorkers& from_;
    std::unique_ptr<Worker> worker_;
  };

 private:
  std::unique_ptr<Worker> Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Worker> worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }

  void Return(std::unique_ptr<Worker> worker) {
    if (worker->memory() > kKeptBytes) return;
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace stoker
