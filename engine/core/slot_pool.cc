#include "engine/core/slot_pool.h"

#include <utility>

#include "engine/core/mapping.h"

namespace stoker {

namespace {

constexpr uint64_t kColumnAlignment = 4096;

uint64_t ColumnBytes(const ColumnSpec& spec, int64_t batch_size) {
  const uint64_t bytes = spec.row_bytes() * static_cast<uint64_t>(batch_size);
  return (bytes + kColumnAlignment - 1) / kColumnAlignment * kColumnAlignment;
}

}  // namespace

size_t ColumnSpec::row_bytes() const {
  size_t bytes = SizeOf(dtype);
  for (int64_t d : row_shape) bytes *= static_cast<size_t>(d);
  return bytes;
}

void* Slot::Row(size_t column, int64_t row) const {
  const Column& c = columns[column];
  size_t row_bytes = SizeOf(c.dtype);
  for (size_t i = 1; i < c.shape.size(); ++i) row_bytes *= static_cast<size_t>(c.shape[i]);
  return static_cast<uint8_t*>(c.data) + row_bytes * static_cast<size_t>(row);
}

// A mapping and the slot that lies in it.
struct SlotPool::Slab {
  Mapping memory;
  Slot slot;
};

uint64_t SlotPool::SlotBytes(const std::vector<ColumnSpec>& columns, int64_t batch_size) {
  uint64_t bytes = 0;
  for (const ColumnSpec& spec : columns) bytes += ColumnBytes(spec, batch_size);
  return bytes;
}

SlotPool::SlotPool(Options options)
    : options_(std::move(options)), slot_bytes_(SlotBytes(options_.columns, options_.batch_size)) {}

SlotPool::~SlotPool() = default;

Result<std::shared_ptr<SlotPool>> SlotPool::Make(Options options, MemoryBudget& budget) {
  std::shared_ptr<SlotPool> pool(new SlotPool(std::move(options)));
  pool->reservation_ = Reservation(budget);
  const uint64_t wanted = pool->slot_bytes_ * static_cast<uint64_t>(pool->options_.working_slots);
  if (!pool->reservation_.Resize(wanted)) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = std::to_string(pool->options_.working_slots) + " batches of " +
                          std::to_string(pool->slot_bytes_) + " bytes need " +
                          std::to_string(wanted) +
                          " bytes of working memory, and of the budget of " +
                          std::to_string(budget.limit()) + " bytes " +
                          std::to_string(budget.limit() - budget.used()) + " are free",
                 .advice = "Raise memory_budget, or lower depth or batch_size"};
  }
  return pool;
}

std::unique_ptr<SlotPool::Slab> SlotPool::MapSlab() const {
  Result<Mapping> memory = Mapping::Map(slot_bytes_, /*huge_pages=*/true);
  if (!memory.ok()) return nullptr;
  auto slab = std::make_unique<Slab>();
  slab->memory = *std::move(memory);
  slab->slot.sample_ids.resize(static_cast<size_t>(options_.batch_size));
  uint8_t* next = slab->memory.data();
  for (const ColumnSpec& spec : options_.columns) {
    Column column{spec.name, spec.dtype, {options_.batch_size}, next};
    column.shape.insert(column.shape.end(), spec.row_shape.begin(), spec.row_shape.end());
    slab->slot.columns.push_back(std::move(column));
    next += ColumnBytes(spec, options_.batch_size);
  }
  return slab;
}

Slot* SlotPool::Acquire() {
  std::lock_guard lock(mutex_);
  if (working_ == options_.working_slots) return nullptr;
  if (free_.empty()) {
    std::unique_ptr<Slab> slab = MapSlab();
    if (slab == nullptr) return nullptr;
    free_.push_back(&slab->slot);
    slabs_.push_back(std::move(slab));
  }
  ++working_;
  Slot* slot = free_.back();
  free_.pop_back();
  return slot;
}

void SlotPool::Abandon(Slot* slot) {
  std::lock_guard lock(mutex_);
  --working_;
  free_.push_back(slot);
}

Batch SlotPool::Lend(Slot* slot) {
  std::lock_guard lock(mutex_);
  --working_;
  ++lent_;
  return Batch(shared_from_this(), slot);
}

void SlotPool::Return(Slot* slot) {
  std::lock_guard lock(mutex_);
  --lent_;
  if (retired_) {
    Unmap(slot);
  } else {
    free_.push_back(slot);
  }
}

bool SlotPool::CanLend() const {
  std::lock_guard lock(mutex_);
  return lent_ < options_.lent_slots;
}

int SlotPool::lent() const {
  std::lock_guard lock(mutex_);
  return lent_;
}

void SlotPool::Retire() {
  std::lock_guard lock(mutex_);
  retired_ = true;
  for (Slot* slot : free_) Unmap(slot);
  free_.clear();
  (void)reservation_.Resize(0);
}

void SlotPool::Unmap(Slot* slot) {
  std::erase_if(slabs_, [slot](const auto& slab) { return &slab->slot == slot; });
}

}  // namespace stoker
