#include "tests/testing/devices/fake_host_batches.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "core/batch/slot_pool.h"

namespace stoker::testing {

namespace {

constexpr size_t kPage = 4096;

std::shared_ptr<void> Memory(size_t bytes, const std::shared_ptr<Device>& pinned_for) {
  void* data = ::operator new(bytes, std::align_val_t(kPage));
  if (pinned_for != nullptr) (void)pinned_for->Pin(data, bytes);  // it may be lost by now
  return {data, [pinned_for](void* gone) {
            if (pinned_for != nullptr) pinned_for->Unpin(gone);
            ::operator delete(gone, std::align_val_t(kPage));
          }};
}

size_t RoundUp(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

struct Room : Slot {
  std::vector<size_t> capacity;  // bytes, by column
  std::shared_ptr<void> slab;
};

std::unique_ptr<Room> Build(const HostBatchesOptions& options) {
  auto room = std::make_unique<Room>();
  size_t in_slab = 0;
  std::vector<size_t> offsets;
  for (const ColumnSpec& spec : options.columns) {
    room->capacity.push_back(spec.row_bytes() * static_cast<size_t>(options.batch_size));
    offsets.push_back(in_slab);
    in_slab += RoundUp(room->capacity.back());
  }
  room->slab = Memory(in_slab, options.pinned_for);
  std::memset(room->slab.get(), 0xEE, in_slab);
  room->sample_ids.resize(static_cast<size_t>(options.batch_size));
  for (size_t c = 0; c < options.columns.size(); ++c) {
    const ColumnSpec& spec = options.columns[c];
    Column column{spec.name, spec.dtype, {options.batch_size}, nullptr};
    column.shape.insert(column.shape.end(), spec.row_shape.begin(), spec.row_shape.end());
    const bool own = !options.one_slab && c > 0;
    room->own_memory.push_back(own ? Memory(RoundUp(room->capacity[c]), options.pinned_for)
                                   : nullptr);
    column.data =
        own ? room->own_memory[c].get() : static_cast<uint8_t*>(room->slab.get()) + offsets[c];
    room->columns.push_back(std::move(column));
  }
  return room;
}

}  // namespace

struct FakeHostBatches::Home {
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Room>> free;  // the last that came home is the next to go
  int lent = 0, max_lent = 0;

  void Take(std::unique_ptr<Room> room) {
    for (size_t c = 0; c < room->columns.size(); ++c) {
      std::memset(room->columns[c].data, 0xDD, room->capacity[c]);
    }
    std::lock_guard lock(mutex);
    --lent;
    free.push_back(std::move(room));
  }
};

FakeHostBatches::FakeHostBatches(HostBatchesOptions options)
    : options_(std::move(options)), home_(std::make_shared<Home>()) {}
FakeHostBatches::~FakeHostBatches() = default;

int FakeHostBatches::lent() const {
  std::lock_guard lock(home_->mutex);
  return home_->lent;
}

int FakeHostBatches::max_lent() const {
  std::lock_guard lock(home_->mutex);
  return home_->max_lent;
}

uint64_t FakeHostBatches::batches_per_epoch() const {
  return static_cast<uint64_t>((options_.epoch_rows + options_.batch_size - 1) /
                               options_.batch_size);
}

int64_t FakeHostBatches::RowsIn(uint64_t index) const {
  return std::min(options_.batch_size,
                  options_.epoch_rows - static_cast<int64_t>(index) * options_.batch_size);
}

Result<Batch> FakeHostBatches::Next(const Interrupt& interrupt) {
  Status before = options_.before ? options_.before(epoch_, index_, interrupt) : Status();
  if (!before.ok() && before.error().code == Code::kCancelled) return before.error();
  const uint64_t epoch = epoch_, index = index_;
  const bool end = index == batches_per_epoch();
  epoch_ += end ? 1 : 0;
  index_ = end ? 0 : index + 1;
  if (!before.ok()) return before.error();
  if (end) return Batch();

  std::unique_ptr<Room> room;
  {
    std::lock_guard lock(home_->mutex);
    if (!home_->free.empty()) {
      room = std::move(home_->free.back());
      home_->free.pop_back();
    }
    home_->max_lent = std::max(home_->max_lent, ++home_->lent);
  }
  if (room == nullptr) room = Build(options_);
  room->epoch = epoch;
  room->index = index;
  room->rows = RowsIn(index);
  for (size_t c = 0; c < room->columns.size(); ++c) {
    room->columns[c].shape[0] = room->rows;
    const size_t bytes = options_.columns[c].row_bytes() * static_cast<size_t>(room->rows);
    std::memcpy(room->columns[c].data, BytesOf(c, epoch, index, bytes).data(), bytes);
    if (c == options_.zeros) std::memset(room->columns[c].data, 0, bytes);
  }
  for (size_t row = 0; row < static_cast<size_t>(room->rows); ++row) {
    room->sample_ids[row] = index * static_cast<uint64_t>(options_.batch_size) + row;
  }
  return Batch(std::shared_ptr<Slot>(room.release(), [home = home_](Slot* slot) {
    home->Take(std::unique_ptr<Room>(static_cast<Room*>(slot)));
  }));
}

std::vector<uint8_t> BytesOf(size_t column, uint64_t epoch, uint64_t index, size_t bytes) {
  std::vector<uint8_t> made(bytes);
  uint64_t state = (epoch * 1000003 + index) * 16 + column;  // SplitMix64, from there on
  for (size_t at = 0; at < bytes; at += 8) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    std::memcpy(made.data() + at, &z, std::min<size_t>(8, bytes - at));
  }
  return made;
}

}  // namespace stoker::testing
