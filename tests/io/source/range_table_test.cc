#include "io/source/range_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/numbers/random.h"

namespace stoker {
namespace {

void ExpectRange(const ByteRange& range, const ByteRange& wanted) {
  EXPECT_EQ(range.file, wanted.file);
  EXPECT_EQ(range.offset, wanted.offset);
  EXPECT_EQ(range.length, wanted.length);
}

// Ranges in runs, added to a table and to a plain list.
struct Twins {
  RangeTable table;
  std::vector<ByteRange> plain;

  void AddRun(uint32_t file, uint64_t offset, const std::vector<uint64_t>& lengths) {
    table.BeginRun(file, offset);
    for (const uint64_t length : lengths) {
      table.Add(length);
      plain.push_back({.file = file, .offset = offset, .length = length});
      offset += length;
    }
  }

  void ExpectEqual() const {
    ASSERT_EQ(table.size(), plain.size());
    for (uint64_t id = 0; id < plain.size(); ++id) ExpectRange(table[id], plain[id]);
  }
};

TEST(RangeTable, GivesRangesBack) {
  RandomStream random({5, 0, 0}, 0);
  Twins twins, others;
  for (uint32_t run = 0; run < 300; ++run) {
    std::vector<uint64_t> lengths(random.Below(5));  // also runs without ranges
    for (uint64_t& length : lengths) length = random.Below(3) * random.Below(1 << 20);
    (run % 2 == 0 ? twins : others).AddRun(run / 7, random.Below(uint64_t{1} << 40), lengths);
  }
  twins.ExpectEqual();
  others.ExpectEqual();
  twins.table.Append(others.table);
  twins.plain.insert(twins.plain.end(), others.plain.begin(), others.plain.end());
  twins.AddRun(7, 8, {9});
  twins.table.ShrinkToFit();
  twins.ExpectEqual();
}

TEST(RangeTable, RunsMayBeLongerThan4GiB) {
  Twins twins;
  const uint64_t most = 0xFFFFFFFF;
  twins.AddRun(3, 1, {most, 0, 1, most, most - 1, 1, 1, 0});
  twins.AddRun(3, 5, {0, most, most});
  twins.ExpectEqual();
}

TEST(RangeTable, TheHashIsOfLengths) {
  std::vector<uint64_t> lengths(2000);
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = i % 37;
  Twins one, many;
  one.AddRun(0, 0, lengths);
  for (size_t i = 0; i < lengths.size(); ++i) {
    many.AddRun(static_cast<uint32_t>(i / 100), 1000 * i, {lengths[i]});
  }
  EXPECT_EQ(one.table.HashLengths(), many.table.HashLengths());
  ++lengths[1999];
  Twins other;
  other.AddRun(0, 0, lengths);
  EXPECT_NE(one.table.HashLengths(), other.table.HashLengths());
  EXPECT_LE(one.table.memory_bytes(), 24 + 4 * one.table.size() + 16 * 4096);
}

}  // namespace
}  // namespace stoker
