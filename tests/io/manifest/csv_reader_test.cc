#include "io/manifest/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Random;
using testing::TempFolder;

using CsvRecords = std::vector<std::vector<std::string>>;

Result<CsvRecords> ReadAll(TextFile file, char delimiter = ',') {
  CsvReader reader(std::move(file), delimiter);
  CsvRecords records;
  std::vector<std::string_view> fields;
  for (;;) {
    const Result<bool> more = reader.Next(fields);
    if (!more.ok()) return more.error();
    if (!*more) return records;
    records.emplace_back(fields.begin(), fields.end());
  }
}

Result<CsvRecords> ReadAll(const std::string& text, char delimiter = ',') {
  return ReadAll(TextFile("text", text), delimiter);
}

// Returns where the line that begins at `begin` ends, if it has only blanks, and nullopt otherwise.
std::optional<size_t> EndOfBlankLine(const std::string& text, size_t begin, char delimiter) {
  size_t at = begin;
  while (at < text.size() && text[at] != delimiter && (text[at] == ' ' || text[at] == '\t')) ++at;
  if (at == text.size()) return at;
  if (text[at] == '\n') return at + 1;
  if (text.compare(at, 2, "\r\n") == 0) return at + 2;
  return std::nullopt;
}

// The reference: looks at one character after the other. Returns nullopt if the text is not CSV.
std::optional<CsvRecords> ReadPlainly(const std::string& text, char delimiter) {
  enum class In { kLine, kStart, kPlain, kQuotes, kQuote, kReturn };
  CsvRecords records;
  std::vector<std::string> fields;
  std::string field;
  In in = In::kLine;
  const auto end_field = [&] { fields.push_back(std::exchange(field, {})); };
  const auto end_record = [&] {
    end_field();
    records.push_back(std::exchange(fields, {}));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto blank = in == In::kLine ? EndOfBlankLine(text, i, delimiter) : std::nullopt;
    if (blank) {
      i = *blank - 1;
      continue;
    }
    if (c == '\0') return std::nullopt;
    if (in == In::kQuotes) {
      in = c == '"' ? In::kQuote : In::kQuotes;
      if (c != '"') field += c;
    } else if (in == In::kQuote && c == '"') {
      field += c;
      in = In::kQuotes;
    } else if (in == In::kReturn) {
      if (c != '\n') return std::nullopt;
      end_record();
      in = In::kLine;
    } else if (c == delimiter) {
      end_field();
      in = In::kStart;
    } else if (c == '\r') {
      in = In::kReturn;
    } else if (c == '\n') {
      end_record();
      in = In::kLine;
    } else if (c == '"') {
      if (in == In::kPlain) return std::nullopt;
      in = In::kQuotes;
    } else {
      if (in == In::kQuote) return std::nullopt;
      field += c;
      in = In::kPlain;
    }
  }
  if (in == In::kQuotes || in == In::kReturn) return std::nullopt;
  if (in != In::kLine) end_record();
  return records;
}

std::string RandomText(Random& random) {
  static const std::string characters("\"\"\",,\n\n\r\tab \0", 14);
  std::string text;
  const int size = random.Between(0, 40);
  const bool nul = random.OneIn(20);
  for (int i = 0; i < size; ++i) {
    text += characters[static_cast<size_t>(random.Between(0, nul ? 13 : 12))];
    if (text.back() == '\r' && !random.OneIn(5)) text += '\n';
  }
  return text;
}

TEST(CsvReader, AgreesWithThePlainReader) {
  Random random(1);
  int good = 0;
  const int cases = testing::Effort(200'000);
  for (int i = 0; i < cases; ++i) {
    const std::string text = RandomText(random);
    const char delimiter = random.OneIn(4) ? '\t' : ',';
    const std::optional<CsvRecords> expected = ReadPlainly(text, delimiter);
    const Result<CsvRecords> read = ReadAll(text, delimiter);
    ASSERT_EQ(read.ok(), expected.has_value()) << ::testing::PrintToString(text);
    if (!read.ok()) continue;
    ++good;
    ASSERT_EQ(*read, *expected) << ::testing::PrintToString(text);
  }
  EXPECT_GT(good, cases / 20);
  EXPECT_LT(good, cases - cases / 20);
}

// Blocks of a file may end anywhere.
TEST(CsvReader, BlocksDoNotMatter) {
  const TempFolder folder;
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const std::string text = RandomText(random);
    const std::string path = folder.Write("a.csv", text);
    const std::optional<CsvRecords> expected = ReadPlainly(text, ',');
    const size_t block = static_cast<size_t>(random.Between(1, 9));
    const Result<CsvRecords> read = ReadAll(TextFile::Open(path, block).value());
    ASSERT_EQ(read.ok(), expected.has_value()) << ::testing::PrintToString(text);
    if (read.ok()) {
      ASSERT_EQ(*read, *expected) << ::testing::PrintToString(text);
    }
  }
}

TEST(CsvReader, WhatIsWrittenIsRead) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const int columns = random.Between(1, 5);
    CsvRecords records(static_cast<size_t>(random.Between(1, 6)));
    std::string text;
    for (std::vector<std::string>& record : records) {
      for (int c = 0; c < columns; ++c) {
        std::string& field = record.emplace_back();
        for (int n = random.Between(0, 6); n > 0; --n) field += "\",\n\rab"[random.Between(0, 5)];
        text += c == 0 ? "\"" : ",\"";
        for (const char each : field) text += each == '"' ? "\"\"" : std::string(1, each);
        text += '"';
      }
      text += random.OneIn(2) ? "\n" : "\r\n";
    }
    const Result<CsvRecords> read = ReadAll(text);
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    EXPECT_EQ(*read, records);
  }
}

TEST(CsvReader, SaysWhereRecordsBegin) {
  CsvReader reader(TextFile("text", "\na,\"b\n\r\n\"\r\n\r\nc"), ',');
  std::vector<std::string_view> fields;
  ASSERT_TRUE(reader.Next(fields).value());
  EXPECT_THAT(fields, ElementsAre("a", "b\n\r\n"));
  EXPECT_EQ(reader.position().line, 2u);
  EXPECT_EQ(reader.position().offset, 1u);
  ASSERT_TRUE(reader.Next(fields).value());
  EXPECT_THAT(fields, ElementsAre("c"));
  EXPECT_EQ(reader.position().line, 6u);
  EXPECT_EQ(reader.position().offset, 13u);
  EXPECT_FALSE(reader.Next(fields).value());
  EXPECT_FALSE(reader.Next(fields).value());
}

TEST(CsvReader, ErrorsSayWhere) {
  const auto error = [](const std::string& text) {
    const Result<CsvRecords> read = ReadAll(text);
    EXPECT_FALSE(read.ok()) << ::testing::PrintToString(text);
    return read.ok() ? std::string() : read.error().ToString();
  };
  EXPECT_THAT(error("a\nb\"\n"), HasSubstr("text at byte 3: line 2: a quote inside a field"));
  EXPECT_THAT(error("a,\"\n\n\"b"), HasSubstr("at byte 6: line 3: text after the closing quote"));
  EXPECT_THAT(error("a\n\"b\n\n"), HasSubstr("at byte 2: line 2: the quote that opens here"));
  EXPECT_THAT(error("a\r"), HasSubstr("at byte 1: line 1: a carriage return"));
  EXPECT_THAT(error(std::string("a\n\"\n\0\"", 7)), HasSubstr("at byte 4: line 3: a NUL"));
  EXPECT_THAT(error(std::string(CsvReader::kMostFields, ',')), HasSubstr("line 1: more than 4096"));
  EXPECT_EQ(ReadAll(std::string(CsvReader::kMostFields - 1, ',')).value()[0].size(),
            CsvReader::kMostFields);
}

// A quote that is not closed does not take a file of any size into memory.
TEST(CsvReader, RecordsHaveALimit) {
  const TempFolder folder;
  std::vector<uint8_t> bytes(20 << 20, 'x');
  bytes[0] = '"';
  const Result<CsvRecords> read = ReadAll(TextFile::Open(folder.Write("a.csv", bytes)).value());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Code::kResourceExhausted);
  EXPECT_THAT(read.error().cause, HasSubstr("16 MiB"));
}

}  // namespace
}  // namespace stoker
