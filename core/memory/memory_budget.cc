#include "core/memory/memory_budget.h"

namespace stoker {

// Reserves the part first, so that the whole never holds bytes that the part may not have.
bool MemoryBudget::TryReserve(uint64_t bytes) {
  if (!TryReserveHere(bytes)) return false;
  if (whole_ == nullptr || whole_->TryReserve(bytes)) return true;
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

bool MemoryBudget::TryReserveHere(uint64_t bytes) {
  const uint64_t limit = this->limit();
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit || used > limit - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < used + bytes &&
         !peak_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
  }
  return true;
}

void MemoryBudget::Release(uint64_t bytes) {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  if (whole_ != nullptr) whole_->Release(bytes);
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
