// Turnstile: lets in a limited number of workers at a time; who comes too many is remembered, and
// somebody is sent in his place when there is room. Nobody waits at it.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

// Any thread; no lock. Whoever is told to send somebody lets a worker come to Enter again: nobody
// who was turned away is forgotten.
class Turnstile {
 public:
  explicit Turnstile(uint32_t limit) : limit_(limit) {}

  // Whether there is room. Else the caller goes away.
  bool Enter() {
    while (!TryEnter()) {
      turned_away_.fetch_add(1, std::memory_order_seq_cst);
      // Whoever left meanwhile may not have seen that; one of the two sees the other.
      if (!HasRoom() || !TakeTurnedAway()) return false;
    }
    return true;
  }

  // Returns whether to send one in the place of one who was turned away.
  [[nodiscard]] bool Leave() {
    inside_.fetch_sub(1, std::memory_order_seq_cst);
    return HasRoom() && TakeTurnedAway();
  }

  // From now on. Returns how many to send in.
  [[nodiscard]] uint32_t SetLimit(uint32_t limit) {
    limit_.store(limit, std::memory_order_seq_cst);
    uint32_t sent = 0;
    const uint32_t inside = inside_.load(std::memory_order_seq_cst);
    while (inside + sent < limit && TakeTurnedAway()) ++sent;
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

  bool TakeTurnedAway() {
    uint32_t away = turned_away_.load(std::memory_order_seq_cst);
    while (away > 0) {
      if (turned_away_.compare_exchange_weak(away, away - 1, std::memory_order_seq_cst))
        return true;
    }
    return false;
  }

  std::atomic<uint32_t> limit_;
  std::atomic<uint32_t> inside_{0};
  std::atomic<uint32_t> turned_away_{0};
};

}  // namespace stoker
