#include "engine/core/memory_budget.h"

namespace stoker {

bool MemoryBudget::TryReserve(uint64_t bytes) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < used + bytes &&
         !peak_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
  }
  return true;
}

bool Reservation::Resize(uint64_t bytes) {
  if (bytes > bytes_) {
    if (budget_ == nullptr || !budget_->TryReserve(bytes - bytes_)) return false;
  } else if (bytes < bytes_) {
    budget_->Release(bytes_ - bytes);
  }
  bytes_ = bytes;
  return true;
}

}  // namespace stoker
