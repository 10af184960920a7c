#include "core/batch/batch_parts.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(BatchParts, AreAsEqualAsCanBeTheFirstOnesLarger) {
  for (int64_t rows = 0; rows <= 30; ++rows) {
    for (int64_t parts = 1; parts <= 9; ++parts) {
      EXPECT_EQ(FirstRowOfPart(rows, 0, parts), 0);
      EXPECT_EQ(FirstRowOfPart(rows, parts, parts), rows);
      for (int64_t i = 0; i < parts; ++i) {
        const int64_t first = FirstRowOfPart(rows, i, parts),
                      end = FirstRowOfPart(rows, i + 1, parts);
        EXPECT_EQ(end - first, rows / parts + (i < rows % parts ? 1 : 0));
        for (int64_t row = first; row < end; ++row) EXPECT_EQ(PartOfRow(rows, row, parts), i);
      }
    }
  }
}

}  // namespace
}  // namespace stoker
