// CacheTable: maps the keys of a cache's ranges to their extents, in 27 to 42 bytes for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace stoker {

// The extent of a range: its segment, its position there, its length, and the checksum of its
// bytes.
struct CacheExtent {
  uint32_t slot = 0;      // the process' number of the segment, below kMostSlots
  uint64_t position = 0;  // below kMostPositions
  uint32_t length = 0;
  uint32_t checksum = 0;

  friend bool operator==(const CacheExtent&, const CacheExtent&) = default;
};

// Thread-safe. If a key is put again, its latest extent counts.
class CacheTable {
 public:
  static constexpr uint32_t kMostSlots = (uint32_t{1} << 24) - 1;
  static constexpr uint64_t kMostPositions = uint64_t{1} << 40;

  std::optional<CacheExtent> Find(uint64_t key) const;
  void Put(uint64_t key, const CacheExtent& extent);
  // Does nothing if the key has a different extent by now.
  void Remove(uint64_t key, const CacheExtent& extent);
  void RemoveSlot(uint32_t slot);  // looks at every range
  void Clear();

  uint64_t size() const;   // ranges
  uint64_t bytes() const;  // of all ranges
  uint64_t memory_bytes() const;

 private:
  struct Entry {
    uint64_t key = 0;
    uint64_t extent = 0;  // the slot above 40 bits of position
    uint32_t length = 0;
    uint32_t checksum = 0;
  };
  static_assert(sizeof(Entry) == 24);

  // A hash table with linear probing. Each part grows separately, so that they never all grow at
  // once.
  struct Part {
    mutable std::mutex mutex;
    std::vector<Entry> entries;  // empty and removed entries have extents that do not exist
    size_t taken = 0;            // entries that are not empty
    size_t size = 0;             // entries with a range
    uint64_t bytes = 0;          // of these ranges
  };

  static size_t Seek(const Part& part, uint64_t key);
  static void Rebuild(Part& part, uint32_t without);
  Part& PartOf(uint64_t key) { return parts_[key >> 58]; }
  const Part& PartOf(uint64_t key) const { return parts_[key >> 58]; }

  std::array<Part, 64> parts_;
};

}  // namespace stoker
