// Compares CacheTable with a map, and measures its memory.
#include "io/cache/cache_table.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

#include "tests/testing/effort.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

TEST(CacheTable, DoesWhatAMapDoes) {
  testing::Random random(1);
  CacheTable table;
  std::map<uint64_t, CacheExtent> twin;
  for (int i = 0; i < testing::Effort(200'000); ++i) {
    // Keys in few parts and at few homes, so that searches are long and wrap around.
    const uint64_t key = static_cast<uint64_t>(random.Between(0, 2)) << 58 |
                         static_cast<uint64_t>(random.Between(0, 300)) << 20 |
                         static_cast<uint64_t>(random.OneIn(2) ? 0 : 0xFFFF'0000);
    const CacheExtent extent{.slot = static_cast<uint32_t>(random.Between(0, 5)),
                             .position = static_cast<uint64_t>(random.Between(0, 1000)),
                             .length = static_cast<uint32_t>(random.Between(1, 1000)),
                             .checksum = static_cast<uint32_t>(i)};
    const auto known = twin.find(key);
    if (random.OneIn(3)) {
      table.Put(key, extent);
      twin[key] = extent;
    } else if (random.OneIn(3) && known != twin.end()) {
      // Remove works only with the extent that the key has.
      CacheExtent other = known->second;
      if (random.OneIn(2)) ++other.position;
      const bool same = other == known->second;
      table.Remove(key, other);
      if (same) twin.erase(known);
    } else if (random.OneIn(2000)) {
      table.RemoveSlot(extent.slot);
      std::erase_if(twin, [&](const auto& range) { return range.second.slot == extent.slot; });
    } else {
      const std::optional<CacheExtent> found = table.Find(key);
      ASSERT_EQ(found.has_value(), known != twin.end()) << i;
      if (found) {
        ASSERT_EQ(*found, known->second) << i;
      }
    }
    ASSERT_EQ(table.size(), twin.size()) << i;
    if (i % 1000 == 0) {
      uint64_t bytes = 0;
      for (const auto& [key, range] : twin) bytes += range.length;
      ASSERT_EQ(table.bytes(), bytes) << i;
    }
  }
  table.Clear();
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.bytes(), 0U);
  EXPECT_FALSE(table.Find(0));
}

TEST(CacheTable, KeepsTheLargestPlaces) {
  CacheTable table;
  const CacheExtent last{.slot = CacheTable::kMostSlots - 1,
                         .position = CacheTable::kMostPositions - 1,
                         .length = ~uint32_t{0},
                         .checksum = ~uint32_t{0}};
  table.Put(~uint64_t{0}, last);
  EXPECT_EQ(table.Find(~uint64_t{0}), last);
  EXPECT_FALSE(table.Find(0));
}

TEST(CacheTable, TakesFortyTwoBytesForEachRangeAtMost) {
  std::mt19937_64 random(1);
  CacheTable table;
  for (int i = 1; i <= 300'000; ++i) {
    table.Put(random(), {});
    if (i % 10'000 == 0 && i >= 100'000) {
      EXPECT_LE(table.memory_bytes(), 42U * static_cast<uint64_t>(i)) << i;
      EXPECT_GE(table.memory_bytes(), 24U * static_cast<uint64_t>(i)) << i;
    }
  }
}

}  // namespace
}  // namespace stoker
