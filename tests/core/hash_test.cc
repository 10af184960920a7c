#include "core/hash/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace stoker {
namespace {

std::vector<uint8_t> Some(size_t bytes) {
  std::vector<uint8_t> some(bytes);
  for (size_t i = 0; i < bytes; ++i) some[i] = static_cast<uint8_t>(i * 37 + i / 7);
  return some;
}

// Files contain these values: they must never change.
TEST(Hash64, ValuesNeverChange) {
  EXPECT_EQ(Hash64(""), 0x0);
  EXPECT_EQ(Hash64("stoker"), 0x7E02E54B2002C858);
  EXPECT_EQ(Hash64("stoker", 1), 0x5C570F37A889840B);
  EXPECT_EQ(Hash64(Some(31)), 0x707C9612BB16A315);
  EXPECT_EQ(Hash64(Some(1000)), 0xFD505869A20F1FC1);
}

TEST(Hash64, EveryChangedByteChangesIt) {
  for (const size_t size : {1, 7, 8, 9, 31, 32, 33, 63, 64, 100, 257}) {
    const std::vector<uint8_t> good = Some(size);
    const uint64_t hash = Hash64(good);
    EXPECT_NE(Hash64(good, 1), hash);
    for (size_t at = 0; at < size; ++at) {
      for (int change = 1; change < 256; ++change) {
        std::vector<uint8_t> bytes = good;
        bytes[at] ^= static_cast<uint8_t>(change);
        ASSERT_NE(Hash64(bytes), hash) << size << " " << at << " " << change;
      }
    }
  }
}

TEST(Hash64, DistinguishesLengths) {
  std::set<uint64_t> hashes;
  for (size_t size = 0; size < 300; ++size) hashes.insert(Hash64(std::vector<uint8_t>(size)));
  EXPECT_EQ(hashes.size(), 300u);
}

// Slots are chosen by the highest bits.
TEST(Hash64, SpreadsOverTheHighestBits) {
  std::vector<int> counts(64);
  for (int i = 0; i < 64000; ++i) ++counts[Hash64(std::to_string(i)) >> 58];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 200);
}

}  // namespace
}  // namespace stoker
