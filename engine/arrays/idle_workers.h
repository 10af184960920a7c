// IdleWorkers: keeps the working memory of one call for later calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace stoker {

// Keeps one worker for each concurrent call, up to kMostKept, except workers whose memory has grown
// large. Worker::memory() is the bytes of the budget that it holds. Thread-safe and lock-free, so
// it works in a forked child; a worker that another thread of the parent was using at the fork is
// lost there, and its bytes stay reserved.
template <typename Worker>
class IdleWorkers {
 public:
  static constexpr uint64_t kKeptBytes = uint64_t{32} << 20;  // a worker that holds more is freed
  static constexpr size_t kMostKept = 64;

  // Lends a worker to one thread, for its own lifetime.
  class Borrowed {
   public:
    explicit Borrowed(IdleWorkers& from) : from_(from), worker_(from.Take()) {
      if (worker_ == nullptr) worker_ = from.make_();
    }
    ~Borrowed() { from_.Return(std::move(worker_)); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    Worker& operator*() const { return *worker_; }
    Worker* operator->() const { return worker_.get(); }

    void Free() { worker_.reset(); }

   private:
    IdleWorkers& from_;
    std::unique_ptr<Worker> worker_;
  };

  explicit IdleWorkers(std::function<std::unique_ptr<Worker>()> make) : make_(std::move(make)) {}
  ~IdleWorkers() { FreeAll(); }
  IdleWorkers(const IdleWorkers&) = delete;
  IdleWorkers& operator=(const IdleWorkers&) = delete;

  Borrowed Lend() { return Borrowed(*this); }

  // Calls `call` with a worker and returns its Result. If the call found no room for memory, it is
  // repeated once with a new worker after all idle ones are freed, so that memory kept for earlier
  // calls never makes one fail.
  template <typename Call>
  auto Run(const Call& call) {
    {
      Borrowed worker = Lend();
      auto result = call(*worker);
      if (result.ok() || result.error().wanted_bytes == 0) return result;
      worker.Free();
    }
    FreeAll();
    return call(*Lend());
  }

 private:
  std::unique_ptr<Worker> Take() {
    for (std::atomic<Worker*>& slot : idle_) {
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (Worker* const taken = slot.exchange(nullptr, std::memory_order_acquire)) {
        return std::unique_ptr<Worker>(taken);
      }
    }
    return nullptr;
  }

  void Return(std::unique_ptr<Worker> worker) {
    if (worker == nullptr || worker->memory() > kKeptBytes) return;
    for (std::atomic<Worker*>& slot : idle_) {
      Worker* none = nullptr;
      if (slot.compare_exchange_strong(none, worker.get(), std::memory_order_release,
                                       std::memory_order_relaxed)) {
        (void)worker.release();
        return;
      }
    }
  }

  void FreeAll() {
    while (Take() != nullptr) {
    }
  }

  const std::function<std::unique_ptr<Worker>()> make_;
  std::array<std::atomic<Worker*>, kMostKept> idle_{};
};

}  // namespace stoker
