// A fixed set of small numbers that threads take from and return to without a lock: which read
// requests of a loader are free, and which are ready for a worker.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

namespace stoker {

// Take and Give may be called on any thread. A number has at most one holder.
class IndexSet {
 public:
  enum class Begin { kFull, kEmpty };

  // Starts with all of [0, count), or empty.
  IndexSet(uint32_t count, Begin begin)
      : count_(count), words_(new std::atomic<uint64_t>[Words()]) {
    const bool full = begin == Begin::kFull;
    for (uint32_t w = 0; w < Words(); ++w) words_[w] = full ? ~uint64_t{0} : 0;
    if (full && count % 64 != 0) words_[Words() - 1] = (uint64_t{1} << (count % 64)) - 1;
  }

  // Takes the lowest free number that it finds; nullopt if the set is empty.
  std::optional<uint32_t> Take() {
    for (uint32_t w = 0; w < Words(); ++w) {
      uint64_t bits = words_[w].load(std::memory_order_relaxed);
      while (bits != 0) {
        const uint64_t lowest = bits & -bits;
        if (words_[w].compare_exchange_weak(bits, bits ^ lowest, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
          return w * 64 + static_cast<uint32_t>(std::countr_zero(lowest));
        }
      }
    }
    return std::nullopt;
  }

  // Takes this number if it is in the set.
  bool TakeThis(uint32_t index) {
    const uint64_t bit = uint64_t{1} << (index % 64);
    return (words_[index / 64].fetch_and(~bit, std::memory_order_acquire) & bit) != 0;
  }

  // Calls `visit` with each number that is in the set; a snapshot.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (uint32_t w = 0; w < Words(); ++w) {
      for (uint64_t bits = words_[w].load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
        visit(w * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
      }
    }
  }

  // Precondition: `index` is not in the set, and no other thread gives it.
  void Give(uint32_t index) {
    words_[index / 64].fetch_or(uint64_t{1} << (index % 64), std::memory_order_seq_cst);
  }

  // The size of the set; a snapshot. Sequentially consistent with Give: if one thread sets a flag
  // and then looks at the set, and another one gives and then looks at the flag, at least one of
  // them sees what the other did.
  uint32_t available() const {
    uint32_t n = 0;
    for (uint32_t w = 0; w < Words(); ++w) {
      n += static_cast<uint32_t>(std::popcount(words_[w].load(std::memory_order_seq_cst)));
    }
    return n;
  }
  uint32_t count() const { return count_; }

 private:
  uint32_t Words() const { return (count_ + 63) / 64; }

  const uint32_t count_;
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace stoker
