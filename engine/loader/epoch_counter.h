// EpochCounter: assigns epochs to iterations, one after another.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

// Thread-safe.
class EpochCounter {
 public:
  uint64_t Take() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // Returns an epoch that was taken but not used, unless a later one was taken meanwhile.
  void GiveBack(uint64_t epoch) {
    uint64_t next = epoch + 1;
    next_.compare_exchange_strong(next, epoch, std::memory_order_relaxed);
  }

  // The epoch that Take would return. This is all the state there is to save and restore.
  uint64_t next() const { return next_.load(std::memory_order_relaxed); }
  void set_next(uint64_t epoch) { next_.store(epoch, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> next_{0};
};

}  // namespace stoker
