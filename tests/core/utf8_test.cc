#include "core/result/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/testing/effort.h"

namespace stoker {
namespace {

// The reference: Unicode's definition, read forwards.
std::string Encoded(uint32_t point) {
  const auto tail = [point](int shift) {
    return static_cast<char>(0x80 | (point >> shift & 0x3F));
  };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | point >> 6), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0 | point >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | point >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, CharactersAndNothingElse) {
  const auto step = static_cast<uint32_t>(100 / testing::Effort(100));
  for (uint32_t point = 0; point < 0x120000; ++point) {
    const bool at_boundary = point % 0x80 == 0 || point % 0x80 == 0x7F;
    if (point % step != 0 && !at_boundary) continue;
    const bool valid = point < 0x110000 && (point < 0xD800 || point > 0xDFFF);
    const std::string text = Encoded(point);
    ASSERT_EQ(Utf8Length(text + "x"), valid ? text.size() : 0u) << point;
    ASSERT_EQ(IsUtf8("ä" + text + "x"), valid) << point;
    ASSERT_TRUE(text.size() == 1 || !IsUtf8(text.substr(0, text.size() - 1))) << point;
  }
  EXPECT_TRUE(IsUtf8(""));
}

TEST(Utf8, LongerFormsAreInvalid) {
  for (const char* text :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF8\x88\x80\x80\x80", "\x80", "\xFF", "\xC3x"}) {
    EXPECT_FALSE(IsUtf8(text));
    EXPECT_EQ(Utf8Length(text), 0u);
  }
}

TEST(Utf8, PrintableTextHasNoControlCharacters) {
  EXPECT_EQ(Printable("ä/b c.jpg"), "ä/b c.jpg");
  EXPECT_EQ(Printable("\x1b[2J\n\t\x7f"), R"(\x1b[2J\n\x09\x7f)");
  EXPECT_EQ(Printable("\xC2\x9B\xC3\xFF"), R"(\xc2\x9b\xc3\xff)");
  EXPECT_EQ(Printable({"\0", 1}), R"(\x00)");
}

}  // namespace
}  // namespace stoker
