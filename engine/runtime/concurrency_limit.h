// ConcurrencyLimit: limits how many workers run at a time without blocking. Workers beyond the
// limit are refused and counted, and another worker is sent for each when there is room.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

// Thread-safe and lock-free. A caller that is told to send workers must make as many call Enter
// again, so that no refused worker is forgotten.
class ConcurrencyLimit {
 public:
  explicit ConcurrencyLimit(uint32_t limit) : limit_(limit) {}

  // Returns whether there is room; if not, the caller must return without working.
  bool Enter() {
    while (!TryEnter()) {
      refused_.fetch_add(1, std::memory_order_seq_cst);
      // A worker that left meanwhile may have missed this refusal; one of the two sees the other.
      if (!HasRoom() || !TakeRefused()) return false;
    }
    return true;
  }

  // Returns whether to send one worker, to replace one that was refused.
  [[nodiscard]] bool Leave() {
    inside_.fetch_sub(1, std::memory_order_seq_cst);
    return HasRoom() && TakeRefused();
  }

  // Sets the limit. Returns how many workers to send.
  [[nodiscard]] uint32_t SetLimit(uint32_t limit) {
    limit_.store(limit, std::memory_order_seq_cst);
    uint32_t sent = 0;
    const uint32_t inside = inside_.load(std::memory_order_seq_cst);
    while (inside + sent < limit && TakeRefused()) ++sent;
    return sent;
  }

  uint32_t limit() const { return limit_.load(std::memory_order_relaxed); }

 private:
  bool HasRoom() const {
    return inside_.load(std::memory_order_seq_cst) < limit_.load(std::memory_order_seq_cst);
  }

  bool TryEnter() {
    uint32_t inside = inside_.load(std::memory_order_seq_cst);
    while (inside < limit_.load(std::memory_order_seq_cst)) {
      if (inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_seq_cst)) return true;
    }
    return false;
  }

  bool TakeRefused() {
    uint32_t away = refused_.load(std::memory_order_seq_cst);
    while (away > 0) {
      if (refused_.compare_exchange_weak(away, away - 1, std::memory_order_seq_cst)) return true;
    }
    return false;
  }

  std::atomic<uint32_t> limit_;
  std::atomic<uint32_t> inside_{0};
  std::atomic<uint32_t> refused_{0};
};

}  // namespace stoker
