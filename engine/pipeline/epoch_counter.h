// EpochCounter: hands out epochs to iterations, each once.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

// Any thread.
class EpochCounter {
 public:
  uint64_t Take() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // Epochs up to this one are taken (by whoever saved the state that is being restored).
  void Pass(uint64_t epoch) {
    uint64_t next = next_.load(std::memory_order_relaxed);
    while (next <= epoch && !next_.compare_exchange_weak(next, epoch + 1)) {
    }
  }

  uint64_t next() const { return next_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> next_{0};
};

}  // namespace stoker
