#include "bindings/cli/text/text_layout.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker::cli {
namespace {

TEST(TextLayout, CountsCharacters) {
  EXPECT_EQ(ColumnsOf("12 µs"), 5);
  EXPECT_EQ(FirstColumns("µs and more", 2), "µs");
  EXPECT_EQ(FirstColumns("µs", 20), "µs");
}

TEST(TextLayout, HangsTheLinesBelowTheFirst) {
  EXPECT_EQ(Hung("one two three", 4, 12), "one two\n    three");
  EXPECT_EQ(Hung("one two three", 4, 17), "one two three");
  EXPECT_EQ(Hung("one two three", 4, 16), "one two\n    three");
  EXPECT_EQ(Hung("one   two", 2, 6), "one\n  two");
  EXPECT_EQ(Hung("12 µs 34 µs", 2, 7), "12 µs\n  34 µs");
  EXPECT_EQ(Hung("one\ntwo", 2, 80), "one\n  two");
  EXPECT_EQ(Hung("", 2, 80), "");
}

TEST(TextLayout, LeavesLongWordsWhole) {
  EXPECT_EQ(Hung("see /a/long/path.jpg now", 2, 8), "see\n  /a/long/path.jpg\n  now");
  EXPECT_EQ(Hung("one two", 80, 40), "one\n" + std::string(80, ' ') + "two");
}

TEST(BreakLines, KeepsLinesThatFit) {
  EXPECT_EQ(BreakLines("", 5), "");
  EXPECT_EQ(BreakLines("abcde\n\nfg", 5), "abcde\n\nfg\n");
  EXPECT_EQ(BreakLines("█████\n", 5), "█████\n");  // characters, not bytes
}

TEST(BreakLines, BreaksLongLinesAtSpaces) {
  EXPECT_EQ(BreakLines("ab cd ef", 5), "ab cd\nef\n");
  EXPECT_EQ(BreakLines("ab cde ef", 5), "ab\ncde\nef\n");
  EXPECT_EQ(BreakLines("abcdefg h", 5), "abcde\nfg h\n");
  EXPECT_EQ(BreakLines("████████ █", 5), "█████\n███ █\n");
}

}  // namespace
}  // namespace stoker::cli
