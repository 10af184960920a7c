#include "bindings/cli/bench/live_view.h"

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

TEST(Broken, KeepsLinesThatFit) {
  EXPECT_EQ(Broken("", 5), "");
  EXPECT_EQ(Broken("abcde\n\nfg", 5), "abcde\n\nfg\n");
  EXPECT_EQ(Broken("█████\n", 5), "█████\n");  // characters, not bytes
}

TEST(Broken, BreaksLongLinesAtSpaces) {
  EXPECT_EQ(Broken("ab cd ef", 5), "ab cd\nef\n");
  EXPECT_EQ(Broken("ab cde ef", 5), "ab\ncde\nef\n");
  EXPECT_EQ(Broken("abcdefg h", 5), "abcde\nfg h\n");
  EXPECT_EQ(Broken("████████ █", 5), "█████\n███ █\n");
}

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
