#include "engine/core/batch.h"

#include <utility>

#include "engine/core/slot_pool.h"

namespace stoker {

Batch::Batch(Batch&& other) noexcept
    : pool_(std::move(other.pool_)), slot_(std::exchange(other.slot_, nullptr)) {}

Batch& Batch::operator=(Batch&& other) noexcept {
  if (this != &other) {
    Release();
    pool_ = std::move(other.pool_);
    slot_ = std::exchange(other.slot_, nullptr);
  }
  return *this;
}

std::span<const Column> Batch::columns() const { return slot_->columns; }

std::span<const uint64_t> Batch::sample_ids() const {
  return {slot_->sample_ids.data(), static_cast<size_t>(slot_->rows)};
}

int64_t Batch::rows() const { return slot_->rows; }
uint64_t Batch::epoch() const { return slot_->epoch; }
uint64_t Batch::index() const { return slot_->index; }

void Batch::Release() {
  if (slot_ != nullptr) pool_->Return(std::exchange(slot_, nullptr));
  pool_.reset();
}

}  // namespace stoker
