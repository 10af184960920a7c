#include "core/batch/batch.h"

#include <algorithm>

#include "core/batch/slot_pool.h"

namespace stoker {

std::string TextOf(const BatchName& batch) {
  const std::string epoch = " of epoch " + std::to_string(batch.epoch);
  const std::string index = "batch " + std::to_string(batch.index);
  if (batch.start == 0) return index + epoch;
  return index + " of what was left" + epoch + " from position " + std::to_string(batch.start);
}

const Column* FindColumn(std::span<const Column> columns, std::string_view name) {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

std::span<const Column> Batch::columns() const { return slot_->columns; }

std::span<const uint64_t> Batch::sample_ids() const {
  return {slot_->sample_ids.data(), static_cast<size_t>(slot_->rows)};
}

int64_t Batch::rows() const { return slot_->rows; }
BatchName Batch::name() const { return slot_->name(); }
uint64_t Batch::position() const { return slot_->position; }

bool Batch::pinned(size_t column) const {
  return slot_->pinned && slot_->own_memory[column] == nullptr;
}

std::span<const CropRegion> Batch::crops() const { return slot_->crops; }

std::shared_ptr<void> Batch::Owner(size_t column) const {
  const std::shared_ptr<void>& own = slot_->own_memory[column];
  return own != nullptr ? own : slot_;
}

}  // namespace stoker
