// LentAccount: counts the batches that the consumer holds, over all slot pools that share the
// account.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

// Thread-safe.
class LentAccount {
 public:
  explicit LentAccount(int most) : most_(most) {}  // batches; 0 means no limit

  // Whether the limit is reached. Two threads that ask at the same time may both be told that it is
  // not.
  bool full() const { return most_ != 0 && batches() >= most_; }

  void Add(uint64_t bytes) {
    batches_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void Remove(uint64_t bytes) {
    batches_.fetch_sub(1, std::memory_order_relaxed);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  int batches() const { return batches_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  const int most_;
  std::atomic<int> batches_{0};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace stoker
