#include "io/cache/cache_table.h"

#include <utility>

namespace stoker {

namespace {

constexpr int kPositionBits = 40;
// Places in a slot that is never used.
constexpr uint64_t kEmptyEntry = ~uint64_t{0}, kRemovedEntry = ~uint64_t{0} - 1;

uint64_t PackExtent(const CacheExtent& extent) {
  return uint64_t{extent.slot} << kPositionBits | extent.position;
}

// Returns where the search for a key begins, from bits that do not choose the part.
size_t HomeOf(uint64_t key, size_t entries) {
  return static_cast<size_t>((key & 0xFFFFFFFF) * entries >> 32);
}

}  // namespace

// Returns the entry that has the key, or the empty one at which the search ends. Precondition: one
// is empty.
size_t CacheTable::Seek(const Part& part, uint64_t key) {
  size_t at = HomeOf(key, part.entries.size());
  while (true) {
    const Entry& entry = part.entries[at];
    if (entry.extent == kEmptyEntry) return at;
    if (entry.extent != kRemovedEntry && entry.key == key) return at;
    if (++at == part.entries.size()) at = 0;
  }
}

void CacheTable::Rebuild(Part& part, uint32_t without) {
  constexpr Entry kNone{.extent = kEmptyEntry};
  std::vector<Entry> old(part.size * 3 / 2 + 16, kNone);
  std::swap(old, part.entries);
  part.size = part.taken = 0;
  part.bytes = 0;
  for (const Entry& entry : old) {
    if (entry.extent == kEmptyEntry || entry.extent == kRemovedEntry ||
        entry.extent >> kPositionBits == without) {
      continue;
    }
    part.entries[Seek(part, entry.key)] = entry;
    ++part.size;
    part.bytes += entry.length;
  }
  part.taken = part.size;
}

std::optional<CacheExtent> CacheTable::Find(uint64_t key) const {
  const Part& part = PartOf(key);
  const std::lock_guard lock(part.mutex);
  if (part.size == 0) return std::nullopt;
  const Entry& entry = part.entries[Seek(part, key)];
  if (entry.extent == kEmptyEntry) return std::nullopt;
  return CacheExtent{.slot = static_cast<uint32_t>(entry.extent >> kPositionBits),
                     .position = entry.extent & (kMostPositions - 1),
                     .length = entry.length,
                     .checksum = entry.checksum};
}

void CacheTable::Put(uint64_t key, const CacheExtent& extent) {
  Part& part = PartOf(key);
  const std::lock_guard lock(part.mutex);
  if ((part.taken + 1) * 8 > part.entries.size() * 7) Rebuild(part, kMostSlots);
  Entry& entry = part.entries[Seek(part, key)];
  if (entry.extent == kEmptyEntry) {
    ++part.taken;
    ++part.size;
  } else {
    part.bytes -= entry.length;
  }
  part.bytes += extent.length;
  entry = {.key = key,
           .extent = PackExtent(extent),
           .length = extent.length,
           .checksum = extent.checksum};
}

void CacheTable::Remove(uint64_t key, const CacheExtent& extent) {
  Part& part = PartOf(key);
  const std::lock_guard lock(part.mutex);
  if (part.size == 0) return;
  Entry& entry = part.entries[Seek(part, key)];
  if (entry.extent != PackExtent(extent)) return;
  entry.extent = kRemovedEntry;
  --part.size;
  part.bytes -= entry.length;
}

void CacheTable::RemoveSlot(uint32_t slot) {
  for (Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    Rebuild(part, slot);
  }
}

void CacheTable::Clear() {
  for (Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    part.entries = {};
    part.taken = part.size = 0;
    part.bytes = 0;
  }
}

uint64_t CacheTable::size() const {
  uint64_t sum = 0;
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    sum += part.size;
  }
  return sum;
}

uint64_t CacheTable::bytes() const {
  uint64_t sum = 0;
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    sum += part.bytes;
  }
  return sum;
}

uint64_t CacheTable::memory_bytes() const {
  uint64_t sum = sizeof(*this);
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    sum += part.entries.capacity() * sizeof(Entry);
  }
  return sum;
}

}  // namespace stoker
