#include "core/batch.h"

#include "core/slot_pool.h"

namespace stoker {

std::span<const Column> Batch::columns() const { return slot_->columns; }

std::span<const uint64_t> Batch::sample_ids() const {
  return {slot_->sample_ids.data(), static_cast<size_t>(slot_->rows)};
}

int64_t Batch::rows() const { return slot_->rows; }
uint64_t Batch::epoch() const { return slot_->epoch; }
uint64_t Batch::index() const { return slot_->index; }

bool Batch::pinned(size_t column) const {
  return slot_->pinned && slot_->own_memory[column] == nullptr;
}

std::shared_ptr<void> Batch::Owner(size_t column) const {
  const std::shared_ptr<void>& own = slot_->own_memory[column];
  return own != nullptr ? own : slot_;
}

}  // namespace stoker
