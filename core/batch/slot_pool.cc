#include "core/batch/slot_pool.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "core/memory/mapping.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/time/stage_times.h"

namespace stoker {

namespace {

constexpr uint64_t kColumnAlignment = 4096;
constexpr uint64_t kOwnAlignment = 64;

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

// Returns the bytes of a column's rows.
uint64_t RowBytesOf(const ColumnSpec& spec, int64_t batch_size) {
  if (spec.room != 0) return spec.object_bytes() * spec.room;
  return spec.row_bytes() * static_cast<uint64_t>(batch_size);
}

// Returns the bytes before a ragged column's offsets.
uint64_t OffsetsAt(const ColumnSpec& spec, int64_t batch_size) {
  return RoundUp(RowBytesOf(spec, batch_size), kOwnAlignment);
}

// Returns the bytes of a column: its rows, and the offsets of a ragged one after them.
uint64_t BytesOf(const ColumnSpec& spec, int64_t batch_size) {
  if (!spec.is_ragged()) return RowBytesOf(spec, batch_size);
  return OffsetsAt(spec, batch_size) + sizeof(int64_t) * (static_cast<uint64_t>(batch_size) + 1);
}

void Place(Column& column, const ColumnSpec& spec, int64_t batch_size, void* data) {
  column.data = data;
  if (!spec.is_ragged()) return;
  uint8_t* const at = static_cast<uint8_t*>(data) + OffsetsAt(spec, batch_size);
  column.offsets = reinterpret_cast<int64_t*>(at);
}

// Returns memory for the views of strings that a column owns, all empty; null if there is no
// memory.
std::shared_ptr<void> StringMemory(int64_t rows, uint64_t bytes) {
  void* const memory = std::aligned_alloc(kOwnAlignment, bytes);
  if (memory == nullptr) return nullptr;
  auto* const strings = static_cast<std::string_view*>(memory);
  std::uninitialized_value_construct_n(strings, rows);
  return {memory, [strings, rows](void* held) {
            for (int64_t row = 0; row < rows; ++row) {
              std::free(const_cast<char*>(strings[row].data()));
            }
            std::free(held);
          }};
}

}  // namespace

Status Slot::SetString(size_t column, int64_t row, std::string_view string) const {
  auto& owned = *static_cast<std::string_view*>(Row(column, row));
  std::free(const_cast<char*>(std::exchange(owned, {}).data()));  // an earlier batch's
  if (string.empty()) return {};
  auto* const copy = static_cast<char*>(std::malloc(string.size()));
  if (copy == nullptr) {
    return Error{Code::kResourceExhausted, "the system has no memory for a string of " +
                                               std::to_string(string.size()) + " bytes"};
  }
  owned = {static_cast<const char*>(std::memcpy(copy, string.data(), string.size())),
           string.size()};
  return {};
}

// Rows of strings are swapped, because each row owns its string.
void Slot::DropRows(std::vector<uint32_t> dropped) {
  std::ranges::sort(dropped);
  auto next = dropped.begin();
  int64_t kept = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (next != dropped.end() && *next == row) {
      ++next;
      continue;
    }
    if (kept != row) {
      std::swap(sample_ids[static_cast<size_t>(kept)], sample_ids[static_cast<size_t>(row)]);
      for (size_t column = 0; column < columns.size(); ++column) {
        const size_t bytes = row_bytes[column];
        if (max_objects[column] != 0) Objects(column, kept) = Objects(column, row);
        if (column == placed) {  // its objects stay where they are
          starts[static_cast<size_t>(kept)] = starts[static_cast<size_t>(row)];
          continue;
        }
        auto* const from = static_cast<uint8_t*>(Row(column, row));
        auto* const to = static_cast<uint8_t*>(Row(column, kept));
        if (IsString(columns[column].dtype)) {
          std::swap_ranges(from, from + bytes, to);
        } else {
          std::memcpy(to, from, bytes);
        }
      }
    }
    ++kept;
  }
  SetRows(kept);
}

void Slot::SetRows(int64_t count) {
  rows = count;
  for (size_t c = 0; c < columns.size(); ++c) {
    columns[c].shape[0] = count * std::max<int64_t>(max_objects[c], 1);
  }
}

void Slot::SetLongest(uint32_t objects) {
  for (const size_t c : padded) {
    columns[c].shape[1] = objects;
    row_bytes[c] = BytesOf(columns[c].dtype, std::span(columns[c].shape).subspan(1));
  }
}

void* Slot::Row(size_t column, int64_t row) const {
  return static_cast<uint8_t*>(columns[column].data) + row_bytes[column] * static_cast<size_t>(row);
}

size_t Slot::StartOf(size_t column, int64_t row) const {
  const auto index = static_cast<size_t>(row);
  return column == placed ? starts[index] : index * max_objects[column];
}

void* Slot::Placed(size_t column, int64_t row) const {
  const Column& of = columns[column];
  const size_t bytes = BytesOf(of.dtype, std::span(of.shape).subspan(1));
  return static_cast<uint8_t*>(of.data) + StartOf(column, row) * bytes;
}

void Slot::SetRowShape(size_t column, std::span<const int64_t> row_shape) {
  std::ranges::copy(row_shape, columns[column].shape.begin() + 1);
}

// Objects move to lower addresses only, row by row, so no row overwrites a later one.
void Slot::Compact() {
  for (size_t c = 0; c < columns.size(); ++c) {
    if (max_objects[c] == 0) continue;
    Column& column = columns[c];
    const size_t bytes = BytesOf(column.dtype, std::span(column.shape).subspan(1));
    auto* const data = static_cast<uint8_t*>(column.data);
    int64_t end = 0;
    column.offsets[0] = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t count = Objects(c, row);
      const size_t from = StartOf(c, row), to = static_cast<size_t>(end);
      if (from != to) {
        std::memmove(data + to * bytes, data + from * bytes, static_cast<size_t>(count) * bytes);
      }
      end += count;
      column.offsets[row + 1] = end;
    }
    column.shape[0] = end;
  }
}

// Memory for many slabs, pinned as one piece until the last slab is freed.
class SlotPool::PinnedSlabs {
 public:
  // Prefers memory of its own, which may have huge pages and the device's node. Some systems can
  // pin only what the driver allocates.
  static Result<std::shared_ptr<const PinnedSlabs>> Make(const std::shared_ptr<Pinning>& pinning,
                                                         uint64_t bytes) {
    // Locked pages cannot be reclaimed: leave them unlocked instead of making the kernel kill a
    // process.
    if (const uint64_t available = AvailableMemory(); bytes > available) {
      return Error{.code = Code::kResourceExhausted,
                   .cause = std::to_string(bytes) + " bytes would be pinned, and " +
                            std::to_string(available) + " are available"};
    }
    Result<std::shared_ptr<const PinnedSlabs>> mapped = Map(pinning, bytes);
    if (mapped.ok() || mapped.error().code == Code::kFailedPrecondition) return mapped;
    Result<void*> allocated = pinning->Allocate(bytes);
    if (allocated.ok()) {
      return std::make_shared<const PinnedSlabs>(pinning, Mapping(),
                                                 static_cast<uint8_t*>(*allocated), bytes);
    }
    Error error = std::move(mapped).error();
    error.cause += "; " + allocated.error().cause;
    return error;
  }
  // `memory` is empty if the pinning has allocated the data.
  PinnedSlabs(std::shared_ptr<Pinning> pinning, Mapping memory, uint8_t* data, uint64_t bytes)
      : pinning_(std::move(pinning)), memory_(std::move(memory)), data_(data), bytes_(bytes) {}
  ~PinnedSlabs() {
    if (memory_.data() != nullptr) {
      pinning_->Unpin(data_);
    } else {
      pinning_->Free(data_);
    }
  }
  PinnedSlabs(const PinnedSlabs&) = delete;
  PinnedSlabs& operator=(const PinnedSlabs&) = delete;

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  static Result<std::shared_ptr<const PinnedSlabs>> Map(const std::shared_ptr<Pinning>& pinning,
                                                        uint64_t bytes) {
    ASSIGN_OR_RETURN(Mapping memory, Mapping::Map(bytes, /*huge_pages=*/true));
    memory.PreferNode(pinning->numa_node());
    memory.KeepFromForks();
    if (Status s = pinning->Pin(memory.data(), memory.size()); !s.ok()) return s.error();
    uint8_t* const data = memory.data();
    const uint64_t mapped = memory.size();
    return std::make_shared<const PinnedSlabs>(pinning, std::move(memory), data, mapped);
  }

  const std::shared_ptr<Pinning> pinning_;
  const Mapping memory_;
  uint8_t* const data_;
  const uint64_t bytes_;
};

// A slot and the memory of its large columns, its own or pinned with others'.
struct SlotPool::Slab : Slot {
  Mapping memory;
  std::shared_ptr<const PinnedSlabs> shared;
};

bool SlotPool::IsSmall(const std::vector<ColumnSpec>& columns, size_t column, int64_t batch_size) {
  constexpr uint64_t kAlwaysSmall = 64 << 10;
  if (column == 0) return false;
  if (columns[column].owns_strings) return true;
  const uint64_t bytes = BytesOf(columns[column], batch_size);
  return bytes <= kAlwaysSmall || bytes <= BytesOf(columns[0], batch_size) / 16;
}

namespace {

// Columns that own strings have their own memory even if the slab has the small ones.
bool HasOwnMemory(const std::vector<ColumnSpec>& columns, size_t column, int64_t batch_size,
                  bool one_slab) {
  const bool strings = column != 0 && columns[column].owns_strings;
  return strings || (!one_slab && SlotPool::IsSmall(columns, column, batch_size));
}

}  // namespace

uint64_t SlotPool::SlotBytes(const std::vector<ColumnSpec>& columns, int64_t batch_size,
                             bool one_slab, const CropRoom& crops) {
  uint64_t bytes = RoundUp(crops.bytes, kColumnAlignment) * crops.regions;
  for (size_t c = 0; c < columns.size(); ++c) {
    const bool small = HasOwnMemory(columns, c, batch_size, one_slab);
    bytes += RoundUp(BytesOf(columns[c], batch_size), small ? kOwnAlignment : kColumnAlignment);
  }
  return bytes;
}

SlotPool::SlotPool(Options options)
    : options_(std::move(options)),
      slot_bytes_(
          SlotBytes(options_.columns, options_.batch_size, options_.one_slab, options_.crops)),
      process_(getpid()),
      working_slots_(options_.working_slots) {
  for (size_t c = 0; c < options_.columns.size(); ++c) {
    const bool small = HasOwnMemory(options_.columns, c, options_.batch_size, options_.one_slab);
    const uint64_t bytes = BytesOf(options_.columns[c], options_.batch_size);
    own_bytes_.push_back(small ? RoundUp(bytes, kOwnAlignment) : 0);
  }
}

SlotPool::~SlotPool() = default;

Result<std::shared_ptr<SlotPool>> SlotPool::Make(Options options, Reservation memory) {
  if (options.lent == nullptr) options.lent = std::make_shared<LentAccount>(options.lent_slots);
  std::shared_ptr<SlotPool> pool(new SlotPool(std::move(options)));
  pool->reservation_ = std::move(memory);
  const uint64_t wanted = pool->slot_bytes_ * static_cast<uint64_t>(pool->options_.working_slots);
  if (!pool->reservation_.Resize(wanted)) {
    std::vector<OptionChange> changes = {{OptionChange::How::kRaise, "memory_budget"},
                                         {OptionChange::How::kLower, "depth"},
                                         {OptionChange::How::kLower, "batch_size"}};
    if (pool->options_.crops.bytes != 0)
      changes.push_back({OptionChange::How::kLower, "crop_bytes"});
    return Error{.code = Code::kResourceExhausted,
                 .cause = std::to_string(pool->options_.working_slots) +
                          Plural(pool->options_.working_slots, " batch of ", " batches of ") +
                          std::to_string(pool->slot_bytes_) +
                          Plural(pool->options_.working_slots, " bytes needs ", " bytes need ") +
                          std::to_string(wanted) +
                          " bytes of working memory, and the budget has no room",
                 .changes = std::move(changes),
                 .wanted_bytes = wanted};
  }
  if (pool->options_.pinning != nullptr) {
    TRY(pool->PinSlabs());
  }
  return pool;
}

// Pins all slots at once, because pinning takes long and must not happen while batches are made.
Status SlotPool::PinSlabs() {
  const auto slabs = static_cast<uint64_t>(options_.working_slots) +
                     static_cast<uint64_t>(options_.pinned_lent_slots);
  const uint64_t begun = NowNanoseconds();
  Result<std::shared_ptr<const PinnedSlabs>> memory =
      PinnedSlabs::Make(options_.pinning, slabs * SlabBytes());
  pinning_ns_ = NowNanoseconds() - begun;
  if (!memory.ok()) {
    if (memory.error().code == Code::kFailedPrecondition) return memory.error();
    not_pinned_ = memory.error().cause;
    return {};
  }
  pinned_bytes_ = (*memory)->bytes();
  for (uint64_t i = slabs; i-- > 0;) {
    free_.push_back(SlabIn((*memory)->data() + i * SlabBytes()));
    free_.back()->shared = *memory;
    free_.back()->pinned = true;
    free_.back()->numa_node = std::max(options_.pinning->numa_node(), 0);
  }
  return {};
}

uint64_t SlotPool::SlabBytes() const {
  uint64_t bytes = slot_bytes_;
  for (uint64_t own : own_bytes_) bytes -= own;
  return bytes;
}

std::unique_ptr<SlotPool::Slab> SlotPool::MapSlab() const {
  Result<Mapping> memory = Mapping::Map(SlabBytes(), /*huge_pages=*/true);
  if (!memory.ok()) return nullptr;
  std::unique_ptr<Slab> slab = SlabIn(memory->data());
  slab->memory = *std::move(memory);
  return slab;
}

std::unique_ptr<SlotPool::Slab> SlotPool::SlabIn(uint8_t* memory) const {
  auto slab = std::make_unique<Slab>();
  slab->sample_ids.resize(static_cast<size_t>(options_.batch_size));
  slab->own_memory.resize(options_.columns.size());
  uint8_t* next = memory;
  for (size_t c = 0; c < options_.columns.size(); ++c) {
    const ColumnSpec& spec = options_.columns[c];
    Column column{spec.name, spec.dtype, {options_.batch_size}, nullptr};
    column.shape.insert(column.shape.end(), spec.row_shape.begin(), spec.row_shape.end());
    if (own_bytes_[c] == 0) {
      Place(column, spec, options_.batch_size, next);
      next += RoundUp(BytesOf(spec, options_.batch_size), kColumnAlignment);
    }
    slab->columns.push_back(std::move(column));
    slab->max_objects.push_back(spec.max_objects);
    slab->row_bytes.push_back(spec.row_bytes());
    if (spec.is_padded()) slab->padded.push_back(c);
    if (spec.room != 0 && spec.is_ragged()) slab->placed = c;
  }
  const CropRoom& crops = options_.crops;
  if (crops.bytes != 0) slab->crops = std::vector<CropRegion>(crops.regions);
  for (size_t i = 0; i < slab->crops.size(); ++i) {
    slab->crops[i].Use(next, crops, i * RoundUp(crops.bytes, kColumnAlignment));
  }
  return slab;
}

// Allocates new memory for the small columns if the last batch's is still in use.
bool SlotPool::GiveOwnMemory(Slot& slot) const {
  for (size_t c = 0; c < own_bytes_.size(); ++c) {
    if (own_bytes_[c] == 0 || slot.own_memory[c] != nullptr) continue;
    if (options_.columns[c].owns_strings) {
      slot.own_memory[c] = StringMemory(options_.batch_size, own_bytes_[c]);
    } else if (void* const memory = std::aligned_alloc(kOwnAlignment, own_bytes_[c])) {
      slot.own_memory[c].reset(memory, std::free);
    }
    if (slot.own_memory[c] == nullptr) return false;
    Place(slot.columns[c], options_.columns[c], options_.batch_size, slot.own_memory[c].get());
  }
  return true;
}

bool SlotPool::Reserve() {
  if (retired_) return true;
  const int slots = pins() ? options_.working_slots : std::max(working_slots_, working_);
  return reservation_.Resize(slot_bytes_ * static_cast<uint64_t>(slots));
}

bool SlotPool::SetWorkingSlots(int slots) {
  std::vector<std::unique_ptr<Slab>> unmapped;  // after the lock is released
  std::lock_guard lock(mutex_);
  const int before = std::exchange(working_slots_, slots);
  if (!Reserve()) {
    working_slots_ = before;
    return false;
  }
  while (static_cast<int>(free_.size()) > MaxFree()) {
    unmapped.push_back(std::move(free_.back()));
    free_.pop_back();
  }
  return true;
}

Slot* SlotPool::Acquire() {
  std::lock_guard lock(mutex_);
  if (working_ >= working_slots_) return nullptr;
  if (free_.empty()) {
    std::unique_ptr<Slab> slab = MapSlab();
    if (slab == nullptr) return nullptr;
    free_.push_back(std::move(slab));
  }
  if (!GiveOwnMemory(*free_.back())) return nullptr;
  ++working_;
  Slot* slot = free_.back().release();
  free_.pop_back();
  return slot;
}

int SlotPool::MaxFree() const {
  if (pins()) return std::numeric_limits<int>::max();
  return std::max(working_slots_ - working_, 0) + kSpareSlots;
}

std::unique_ptr<SlotPool::Slab> SlotPool::Keep(Slot* slot) {
  std::unique_ptr<Slab> slab(static_cast<Slab*>(slot));
  const bool wanted = !pins() || slab->pinned;
  if (retired_ || !wanted || static_cast<int>(free_.size()) >= MaxFree()) return slab;
  free_.push_back(std::move(slab));
  return nullptr;
}

// Returns a slot when the last owner of the lease releases it, unless the slot is still in
// production: then it was only viewed.
struct SlotPool::Lease {
  std::shared_ptr<SlotPool> pool;
  bool lent = false;  // set by an owner

  void operator()(Slot* home) const {
    if (lent) pool->Return(home);
  }
};

std::shared_ptr<Slot> SlotPool::LeaseOn(Slot* slot) {
  std::shared_ptr<Slot> lease = slot->viewed.lock();
  return lease != nullptr ? lease : std::shared_ptr<Slot>(slot, Lease{shared_from_this()});
}

Batch SlotPool::View(Slot* slot) {
  std::shared_ptr<Slot> lease = LeaseOn(slot);
  slot->viewed = lease;
  return Batch(std::move(lease));
}

void SlotPool::Abandon(Slot* slot) {
  if (!slot->viewed.expired()) return Lend(slot).Release();
  for (std::shared_ptr<void>& own : slot->own_memory) own.reset();  // a view may have an Owner
  std::unique_ptr<Slab> unmapped;                                   // after the lock is released
  std::lock_guard lock(mutex_);
  --working_;
  unmapped = Keep(slot);
  (void)Reserve();  // never more than reserved before
}

Batch SlotPool::Lend(Slot* slot) {
  {
    std::lock_guard lock(mutex_);
    --working_;
    (void)Reserve();  // never more than reserved before
    ++lent_;
    options_.lent->Add(slot_bytes_);
  }
  std::shared_ptr<Slot> lease = LeaseOn(slot);
  std::get_deleter<Lease>(lease)->lent = true;
  return Batch(std::move(lease));
}

void SlotPool::Return(Slot* slot) {
  if (getpid() != process_) return;  // in a forked child another thread may have held the lock
  for (std::shared_ptr<void>& own : slot->own_memory) own.reset();  // owned by its Owners
  std::unique_ptr<Slab> unmapped;                                   // after the lock is released
  std::lock_guard lock(mutex_);
  --lent_;
  options_.lent->Remove(slot_bytes_);
  unmapped = Keep(slot);
}

bool SlotPool::CanLend() const { return !options_.lent->full(); }

int SlotPool::lent() const {
  std::lock_guard lock(mutex_);
  return lent_;
}

int SlotPool::mapped() const {
  std::lock_guard lock(mutex_);
  return working_ + lent_ + static_cast<int>(free_.size());
}

void SlotPool::Retire() {
  std::lock_guard lock(mutex_);
  retired_ = true;
  free_.clear();
  (void)reservation_.Resize(0);
}

}  // namespace stoker
