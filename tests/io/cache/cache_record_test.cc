// The records of a cache's index files, whole and damaged, and the names of its files.
#include "io/cache/cache_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "io/cache/cache_folder.h"
#include "io/cache/cached_object.h"

namespace stoker {
namespace {

constexpr CacheRecord kRecord{
    .key = 0x0123456789ABCDEF, .position = 4096, .length = 110'000, .checksum = 0xDEADBEEF};

TEST(CacheRecord, IsReadAsItWasWritten) {
  const PackedCacheRecord bytes = PackCacheRecord(kRecord, 7);
  EXPECT_EQ(UnpackCacheRecord(bytes, 7, 1 << 20), kRecord);
  EXPECT_EQ(UnpackCacheRecord(bytes, 7, kRecord.position + kRecord.length), kRecord);
}

TEST(CacheRecord, IsRefusedWithAnyBitChanged) {
  const PackedCacheRecord sound = PackCacheRecord(kRecord, 7);
  for (size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    PackedCacheRecord bytes = sound;
    bytes[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
    EXPECT_FALSE(UnpackCacheRecord(bytes, 7, 1 << 20)) << bit;
  }
}

TEST(CacheRecord, IsRefusedInPartsZerosAndOtherSegments) {
  const PackedCacheRecord sound = PackCacheRecord(kRecord, 7);
  EXPECT_FALSE(UnpackCacheRecord(sound, 8, 1 << 20));
  for (size_t torn = 0; torn < sound.size(); ++torn) {
    PackedCacheRecord bytes{};
    std::copy_n(sound.begin(), torn, bytes.begin());
    EXPECT_FALSE(UnpackCacheRecord(bytes, 7, 1 << 20)) << torn;
  }
  EXPECT_FALSE(UnpackCacheRecord(PackedCacheRecord{}, 0, 1 << 20));
}

// The maker of a file may have signed any numbers.
TEST(CacheRecord, IsRefusedOutsideOfItsSegment) {
  const auto holds = [](uint64_t position, uint64_t length) {
    const CacheRecord record{.position = position, .length = length};
    return UnpackCacheRecord(PackCacheRecord(record, 1), 1, 1000).has_value();
  };
  EXPECT_TRUE(holds(0, 1000));
  EXPECT_TRUE(holds(999, 1));
  EXPECT_FALSE(holds(0, 0));
  EXPECT_FALSE(holds(1000, 1));
  EXPECT_FALSE(holds(1, 1000));
  EXPECT_FALSE(holds(~uint64_t{0}, 2));
  EXPECT_FALSE(holds(2, ~uint64_t{0}));
}

TEST(CacheRecord, EachPartOfAKeyCounts) {
  std::set<std::pair<uint64_t, uint32_t>> keys;
  const auto add = [&](const RangeKey& key) { keys.insert({key.number, key.check}); };
  add(CachedObject("http://a/b", "1", 10).KeyOf(0, 5));
  add(CachedObject("http://a/c", "1", 10).KeyOf(0, 5));
  add(CachedObject("http://a/b", "2", 10).KeyOf(0, 5));
  add(CachedObject("http://a/b", "1", 11).KeyOf(0, 5));
  add(CachedObject("http://a/b", "1", 10).KeyOf(1, 5));
  add(CachedObject("http://a/b", "1", 10).KeyOf(0, 6));
  add(CachedObject("http://a/b1", "", 10).KeyOf(0, 5));
  add(CachedObject("", "http://a/b1", 10).KeyOf(0, 5));
  EXPECT_EQ(keys.size(), 8U);
  std::set<uint64_t> numbers;
  std::set<uint32_t> checks;
  for (const auto& [number, check] : keys) {
    numbers.insert(number);
    checks.insert(check);
  }
  EXPECT_EQ(numbers.size(), 8U);
  EXPECT_EQ(checks.size(), 8U);
}

TEST(SegmentName, IsReadAsItWasWritten) {
  for (const SegmentName& name : {SegmentName{0, 0}, SegmentName{26, 1 << 20},
                                  SegmentName{uint64_t{1} << 62, uint64_t{1} << 40}}) {
    EXPECT_EQ(SegmentName::OfData(name.Data()), name);
    EXPECT_EQ(SegmentName::OfIndex(name.Index()), name);
    EXPECT_FALSE(SegmentName::OfData(name.Index()));
    EXPECT_FALSE(SegmentName::OfIndex(name.Data()));
  }
  EXPECT_EQ(SegmentName({26, 1 << 20}).Data(), "v1-1a-100000.data");
}

TEST(SegmentName, OtherFilesHaveNone) {
  for (const std::string name :
       {"", "v1-.data", "v1-1.data", "v1-1-.data", "v1--1.data", "v1-1-1.dat", "v1-1-1.data~",
        "v1-01-1.data", "v1-1A-1.data", "v1-1-1 .data", "v1-+1-1.data", "v2-1-1.data",
        "v1-1-1-1.data", "v1-ffffffffffffffff-1.data", "v1-1-ffffffffffffffff.data",
        "v1-11111111111111111-1.data", "xv1-1-1.data", "v1-1-1.index"}) {
    EXPECT_FALSE(SegmentName::OfData(name)) << name;
  }
}

}  // namespace
}  // namespace stoker
