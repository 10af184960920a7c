// EpochCounter: hands out epochs to iterations, one after another.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

// Any thread.
class EpochCounter {
 public:
  uint64_t Take() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // An epoch that was taken and not used goes back, unless a later one was taken meanwhile.
  void GiveBack(uint64_t epoch) {
    uint64_t next = epoch + 1;
    next_.compare_exchange_strong(next, epoch, std::memory_order_relaxed);
  }

  // The one that Take would return; all that there is to save and restore.
  uint64_t next() const { return next_.load(std::memory_order_relaxed); }
  void set_next(uint64_t epoch) { next_.store(epoch, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> next_{0};
};

}  // namespace stoker
