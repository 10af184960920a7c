#include "io/files/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

size_t JsonBelow(testing::Random& random, size_t n) {
  return static_cast<size_t>(random.Between(0, static_cast<int>(n) - 1));
}

// Reads the next value. Elements of lists and values of objects for which `skips` returns true are
// left out.
template <typename F>
Result<json> ReadJson(JsonReader& reader, F& skips) {
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader.Peek());
  if (type == JsonReader::Type::kObject) {
    json object = json::object();
    TRY(reader.ForEachMember([&]() -> Status {
      const std::string key = reader.key();
      if (skips()) return reader.Skip();
      ASSIGN_OR_RETURN(object[key], ReadJson(reader, skips));
      return {};
    }));
    return object;
  }
  if (type == JsonReader::Type::kList) {
    json list = json::array();
    TRY(reader.ForEachValue([&]() -> Status {
      if (skips()) return reader.Skip();
      ASSIGN_OR_RETURN(json value, ReadJson(reader, skips));
      list.push_back(std::move(value));
      return {};
    }));
    return list;
  }
  if (type == JsonReader::Type::kString) {
    std::string text;
    TRY(reader.String("this", text));
    return json(text);
  }
  if (type == JsonReader::Type::kBool) {
    ASSIGN_OR_RETURN(const bool value, reader.Bool("this"));
    return json(value);
  }
  if (type == JsonReader::Type::kNumber) {
    ASSIGN_OR_RETURN(const double number, reader.Number("this"));
    return json(number);
  }
  TRY(reader.Skip());
  return json();
}

Result<json> ReadAllJson(TextFile file) {
  JsonReader reader(std::move(file));
  const auto never = [] { return false; };
  ASSIGN_OR_RETURN(json value, ReadJson(reader, never));
  TRY(reader.End());
  return value;
}

json RandomJson(testing::Random& random, int depth) {
  const size_t kind = JsonBelow(random, depth > 5 ? 5 : 8);
  if (kind == 0) return nullptr;
  if (kind == 1) return JsonBelow(random, 2) == 0;
  if (kind == 2) return static_cast<double>(JsonBelow(random, 2000)) - 1000;
  if (kind == 3) return (static_cast<double>(JsonBelow(random, 1 << 30)) - (1 << 29)) * 1e-7;
  if (kind == 4) {
    static const std::vector<std::string> parts{"a", "\"", "\\", "\n", "\x01", "é", "€", "😀", "/"};
    std::string text;
    for (size_t i = JsonBelow(random, 9); i > 0; --i)
      text += parts[JsonBelow(random, parts.size())];
    return text;
  }
  json value = kind == 5 ? json::object() : json::array();
  for (size_t i = JsonBelow(random, 6); i > 0; --i) {
    if (kind == 5) {
      value["k" + std::to_string(JsonBelow(random, 9))] = RandomJson(random, depth + 1);
    } else {
      value.push_back(RandomJson(random, depth + 1));
    }
  }
  return value;
}

std::string JsonTextOf(testing::Random& random, const json& value) {
  return value.dump(static_cast<int>(JsonBelow(random, 4)) - 1, ' ', JsonBelow(random, 2) == 0);
}

TEST(JsonReader, ReadsWhatNlohmannWroteInBlocksOfAnySize) {
  const testing::TempFolder folder;
  testing::Random random(1);
  for (int run = 0; run < testing::Effort(500); ++run) {
    const json value = RandomJson(random, 0);
    folder.Write("a.json", JsonTextOf(random, value) + " \n");
    TextFile file = TextFile::Open(folder.Path("a.json"), 1 + JsonBelow(random, 40)).value();
    const Result<json> read = ReadAllJson(std::move(file));
    ASSERT_TRUE(read.ok()) << read.error().ToString() << value.dump();
    ASSERT_EQ(*read, value);
  }
}

TEST(JsonReader, AcceptsWhatNlohmannAcceptsOfChangedTexts) {
  testing::Random random(2);
  int good = 0;
  for (int run = 0; run < testing::Effort(20000); ++run) {
    std::string text = JsonTextOf(random, RandomJson(random, 2));
    for (size_t i = JsonBelow(random, 3); i > 0; --i) {
      constexpr std::string_view kBytes = "[]{}\",:0123-+.eE\\untrfals \n\x80\xC3";
      const size_t at = JsonBelow(random, text.size());
      const char byte = kBytes[JsonBelow(random, kBytes.size())];
      const size_t how = JsonBelow(random, 3);
      if (how == 0) text[at] = byte;
      if (how == 1) text.insert(at, 1, byte);
      if (how == 2) text.erase(at, 1);
      if (text.empty()) text = "0";
    }
    const json expected = json::parse(text, nullptr, /*allow_exceptions=*/false);
    const Result<json> read = ReadAllJson(TextFile("text", text));
    ASSERT_EQ(read.ok(), !expected.is_discarded())
        << text << (read.ok() ? "" : read.error().ToString());
    if (!read.ok()) continue;
    ++good;
    ASSERT_EQ(*read, expected) << text;
  }
  EXPECT_GT(good, testing::Effort(20000) / 10);
}

// Returns `value` without what `skips` left out, which was called in the same order.
template <typename F>
json JsonWithout(const json& value, F& skips) {
  if (!value.is_structured()) return value;
  json kept = value.is_object() ? json::object() : json::array();
  for (const auto& [key, member] : value.items()) {
    if (skips()) continue;
    if (value.is_object()) {
      kept[key] = JsonWithout(member, skips);
    } else {
      kept.push_back(JsonWithout(member, skips));
    }
  }
  return kept;
}

TEST(JsonReader, SkippedValuesLeaveTheOthers) {
  const testing::TempFolder folder;
  testing::Random random(3);
  for (int run = 0; run < testing::Effort(500); ++run) {
    const json value = RandomJson(random, 0);
    folder.Write("a.json", JsonTextOf(random, value));
    JsonReader reader(TextFile::Open(folder.Path("a.json"), 1 + JsonBelow(random, 40)).value());
    testing::Random choices(static_cast<uint32_t>(run)), again(static_cast<uint32_t>(run));
    const auto skips = [&] { return JsonBelow(choices, 3) == 0; };
    const auto skipped = [&] { return JsonBelow(again, 3) == 0; };
    const Result<json> read = ReadJson(reader, skips);
    ASSERT_TRUE(read.ok()) << read.error().ToString() << value.dump();
    ASSERT_EQ(*read, JsonWithout(value, skipped)) << value.dump();
    EXPECT_TRUE(reader.End().ok());
  }
}

struct WrongJson {
  const char* text;
  uint64_t offset;
  const char* cause;
};

TEST(JsonReader, ErrorsNameTheByte) {
  for (const WrongJson& wrong :
       std::vector<WrongJson>{{"", 0, "truncated"},
                              {"[1, ", 4, "truncated"},
                              {"{\"a\": \"b", 8, "truncated"},
                              {"[1 2]", 3, "this is not JSON: found 2]"},
                              {"[1,]", 3, "this is not JSON: found ]"},
                              {"{\"a\" 1}", 5, "this is not JSON: found 1}"},
                              {"[01]", 1, "this is not JSON: found 01]"},
                              {"[1, NaN]", 4, "NaN is not JSON, though Python's json writes it"},
                              {"[-Infinity]", 1, "-Infinity is not JSON"},
                              {"[nan]", 1, "nan is not JSON"},
                              {"[nothing]", 1, "this is not JSON: found nothing]"},
                              {"[tru]", 1, "this is not JSON: found tru]"},
                              {"[nul", 1, "truncated"},
                              {"[\"\\ud800\"]", 2, "'\\ud800' is half of a surrogate pair"},
                              {"[\"a\x01\"]", 3, "control character"},
                              {"[\"a\xFF\"]", 1, "not UTF-8"},
                              {"[1e999]", 1, "float64 cannot hold"},
                              {"[\x1b]", 1, "found \\x1b]"},
                              {"[1] x", 4, "this is not JSON: found x"}}) {
    const Result<json> read = ReadAllJson(TextFile("a.json", wrong.text));
    ASSERT_FALSE(read.ok()) << wrong.text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_EQ(read.error().file, "a.json");
    EXPECT_EQ(read.error().offset, wrong.offset) << read.error().ToString();
    EXPECT_THAT(read.error().cause, HasSubstr(wrong.cause));
  }
}

TEST(JsonReader, IntegersMayBeWrittenAsFloats) {
  const auto read = [](const char* text) {
    JsonReader reader(TextFile("a", text));
    return reader.Integer("'id'");
  };
  EXPECT_EQ(read("-9223372036854775808").value(), INT64_MIN);
  EXPECT_EQ(read("7.0").value(), 7);
  EXPECT_EQ(read("1e3 ").value(), 1000);
  EXPECT_EQ(read("-0").value(), 0);
  for (const char* const wrong : {"9223372036854775808", "0.5", "1e16"}) {
    EXPECT_THAT(read(wrong).error().cause, HasSubstr("'id' is not an integer")) << wrong;
    EXPECT_EQ(read(wrong).error().offset, 0u);
  }
  EXPECT_THAT(read("\"7\"").error().cause, HasSubstr("'id' is a string, not a number"));
  EXPECT_THAT(read("null").error().cause, HasSubstr("'id' is null, not a number"));
  EXPECT_THAT(read("01 ").error().cause, HasSubstr("not JSON"));
}

TEST(JsonReader, NumbersTooSmallForFloat64Are0) {
  const auto read = [](const std::string& text) {
    JsonReader reader(TextFile("a", text));
    return reader.Number("'x'");
  };
  const std::string zeros(400, '0');
  for (const std::string& small :
       std::vector<std::string>{"1e-400", "-2.5E-324000", "0." + zeros + "7e20",
                                "1" + zeros + "e-900", "1e-99999999999999999999", "0e999"}) {
    const Result<double> number = read(small);
    ASSERT_TRUE(number.ok()) << number.error().ToString();
    EXPECT_EQ(*number, 0) << small;
  }
  for (const std::string& large :
       std::vector<std::string>{"1e400", "-1.5E+309", "1" + zeros + ".5", "0." + zeros + "7e900",
                                "1" + zeros + "e-20", "0.1e99999999999999999999"}) {
    EXPECT_THAT(read(large).error().cause, HasSubstr("float64 cannot hold")) << large;
  }
  EXPECT_EQ(read("5e-324").value(), 5e-324);
}

TEST(JsonReader, DeepNestingIsRefused) {
  const auto skip = [](size_t levels) {
    JsonReader reader(TextFile("a", std::string(levels, '[') + std::string(levels, ']')));
    return reader.Skip();
  };
  EXPECT_TRUE(skip(JsonReader::kMostLevels).ok());
  EXPECT_THAT(skip(JsonReader::kMostLevels + 1).error().cause, HasSubstr("nested"));
  EXPECT_THAT(skip(10'000'000).error().cause, HasSubstr("nested"));
}

TEST(JsonReader, SkippedBracketsMustMatch) {
  for (const char* const wrong : {"[1, {\"a\": [}]", "[}", "{\"a\": \"}", "[[]"}) {
    JsonReader reader(TextFile("a", wrong));
    EXPECT_FALSE(reader.Skip().ok()) << wrong;
  }
}

}  // namespace
}  // namespace stoker
