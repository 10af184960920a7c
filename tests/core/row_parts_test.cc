// The bytes of rows have every part that the rows are in, and the header.
#include "core/batch/row_parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace stoker {
namespace {

constexpr uint64_t kHeader = 3 * RowParts::kUnit;

// A file each of whose rows has one unit.
RowParts PartsOf(int rows) {
  RowParts parts;
  for (int i = 0; i < kRowParts; ++i) {
    const uint64_t rows_end = static_cast<uint64_t>(FirstRowOf(i < 8 ? i + 1 : i, rows));
    parts.at[static_cast<size_t>(i)] = static_cast<uint16_t>(rows_end + (i < 8 ? 0 : 3));
  }
  return parts;
}

TEST(RowParts, HaveAllRows) {
  for (int rows = 1; rows < 200; ++rows) {
    EXPECT_EQ(FirstRowOf(0, rows), 0);
    EXPECT_EQ(FirstRowOf(kRowParts, rows), rows);
    for (int part = 0; part < kRowParts; ++part) {
      EXPECT_LE(FirstRowOf(part, rows), FirstRowOf(part + 1, rows)) << part << " of " << rows;
    }
  }
}

TEST(RowParts, AreFound) {
  for (const int rows : {1, 2, 7, 16, 31, 64, 129}) {
    const RowParts parts = PartsOf(rows);
    const uint64_t bytes = static_cast<uint64_t>(rows) * RowParts::kUnit + kHeader;
    const uint64_t header = static_cast<uint64_t>(rows / 2) * RowParts::kUnit;
    ASSERT_TRUE(parts.FitsIn(bytes));
    EXPECT_EQ(parts.Find(0, rows, rows, bytes), (RowParts::Bytes{0, bytes}));
    for (int top = 0; top < rows; ++top) {
      for (int bottom = top + 1; bottom <= rows; ++bottom) {
        const auto [begin, end] = parts.Find(top, bottom, rows, bytes);
        const auto place = [&](int row) {
          return static_cast<uint64_t>(row) * RowParts::kUnit + (row < rows / 2 ? 0 : kHeader);
        };
        EXPECT_LE(begin, std::min(place(top), header));
        EXPECT_GE(end, std::max(place(bottom - 1) + RowParts::kUnit, header + kHeader));
        // No more than a part next to those and the header.
        const uint64_t more = static_cast<uint64_t>(rows * 5 / 64 + 1) * RowParts::kUnit;
        EXPECT_GE(begin + more, std::min(place(top), header));
        EXPECT_LE(end, std::max(place(bottom - 1) + RowParts::kUnit, header + kHeader) + more);
      }
    }
  }
}

// The usual crop of the centre leaves out a sixteenth of the rows on each side.
TEST(RowParts, TheCentreLeavesOutTwo) {
  const int rows = 47;
  const RowParts parts = PartsOf(rows);
  const uint64_t bytes = rows * RowParts::kUnit + kHeader;
  EXPECT_EQ(parts.Find(2, 45, rows, bytes),
            (RowParts::Bytes{2 * RowParts::kUnit, bytes - 2 * RowParts::kUnit}));
}

TEST(RowParts, NumbersThatNoFileHasAreRefused) {
  const RowParts sound = PartsOf(64);
  const uint64_t bytes = 64 * RowParts::kUnit + kHeader;
  ASSERT_TRUE(sound.FitsIn(bytes));
  EXPECT_FALSE(RowParts().FitsIn(bytes));
  EXPECT_FALSE(sound.FitsIn(bytes / 2));
  EXPECT_FALSE(sound.FitsIn(0));
  RowParts forged = sound;
  forged.at[3] = 0;
  EXPECT_FALSE(forged.FitsIn(bytes));
  forged = sound;
  forged.at[7] = forged.at[8];
  EXPECT_FALSE(forged.FitsIn(bytes));
}

}  // namespace
}  // namespace stoker
