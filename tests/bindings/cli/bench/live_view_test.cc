#include "bindings/cli/bench/live_view.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

TEST(FirstLines, DropsLinesBeyondTheLimit) {
  EXPECT_EQ(FirstLines("a\n\nc\n", 3), "a\n\nc\n");
  EXPECT_EQ(FirstLines("a\n\nc\n", 2), "a\n\n");
  EXPECT_EQ(FirstLines("a\nb", 5), "a\nb");
  EXPECT_EQ(FirstLines("", 2), "");
}

TEST(Redraw, MovesUpOverTheLastDrawing) {
  EXPECT_EQ(Redraw(0, "a\nb\n"), "\ra\x1b[K\nb\x1b[K\n\x1b[J");
  EXPECT_EQ(Redraw(2, "c\n"), "\r\x1b[2Ac\x1b[K\n\x1b[J");
  EXPECT_EQ(Redraw(1, ""), "\r\x1b[1A\x1b[J");
}

}  // namespace
}  // namespace stoker::cli
