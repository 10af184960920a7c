#include "transforms/decode/orientation.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace stoker {
namespace {

using Rows = std::vector<std::vector<int>>;

void Mirror(Rows& rows, bool columns, bool upside_down) {
  if (columns) {
    for (std::vector<int>& row : rows) row = {row.rbegin(), row.rend()};
  }
  if (upside_down) rows = {rows.rbegin(), rows.rend()};
}

// Returns a picture of 3 × 2 different pixels as it is viewed.
Rows View(Orientation orientation) {
  Rows rows{{1, 2, 3}, {4, 5, 6}};
  const Turn turn = TurnOf(orientation);
  if (turn.transpose) rows = {{1, 4}, {2, 5}, {3, 6}};
  Mirror(rows, turn.mirror_columns, turn.mirror_rows);
  return rows;
}

TEST(Orientation, MirroredIsTheTurnAndThenTheMirrors) {
  for (int tag = 1; tag <= 8; ++tag) {
    const auto orientation = static_cast<Orientation>(tag);
    for (const auto& [columns, rows] :
         {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
      Rows wanted = View(orientation);
      Mirror(wanted, columns, rows);
      EXPECT_EQ(View(Mirrored(orientation, columns, rows)), wanted) << tag << columns << rows;
    }
  }
}

}  // namespace
}  // namespace stoker
