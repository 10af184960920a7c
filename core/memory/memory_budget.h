// The budget for working memory: slots, read buffers and decode scratch of all loaders of a Runtime
// together never exceed it.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>

namespace stoker {

// Thread-safe and lock-free. It counts bytes and allocates nothing.
class MemoryBudget {
 public:
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  explicit MemoryBudget(uint64_t limit_bytes) : limit_(limit_bytes) {}
  // A part of `whole`, which must outlive it: bytes reserved here are also reserved in `whole`.
  MemoryBudget(uint64_t limit_bytes, MemoryBudget& whole) : limit_(limit_bytes), whole_(&whole) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Reserves all of `bytes`; returns false and reserves nothing if that would exceed the limit.
  [[nodiscard]] bool TryReserve(uint64_t bytes);
  // Precondition: at least `bytes` are reserved.
  void Release(uint64_t bytes);

  // Bytes already reserved beyond the new limit stay reserved until they are released.
  void SetLimit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  bool TryReserveHere(uint64_t bytes);

  std::atomic<uint64_t> limit_;
  MemoryBudget* const whole_ = nullptr;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
};

// Reserved bytes of a budget, released on destruction. Move-only; `budget` must outlive it.
class Reservation {
 public:
  Reservation() = default;
  explicit Reservation(MemoryBudget& budget) : budget_(&budget) {}
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Reservation() { (void)Resize(0); }

  // Grows or shrinks to `bytes`; returns false and changes nothing if the budget has no room.
  [[nodiscard]] bool Resize(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }
  // Returns an empty reservation of the same budget.
  Reservation Another() const { return budget_ == nullptr ? Reservation() : Reservation(*budget_); }

 private:
  MemoryBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace stoker
