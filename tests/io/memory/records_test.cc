#include "io/memory/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#include "io/memory/record_text.h"

namespace stoker {
namespace {

// A folder of its own that is removed with everything in it.
class RecordFolder : public ::testing::Test {
 protected:
  RecordFolder() {
    std::string name = ::testing::TempDir() + "recordsXXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~RecordFolder() override { std::filesystem::remove_all(folder_); }

  // A file with `bytes` bytes that count on from `first`.
  std::string Write(const std::string& name, size_t bytes, uint8_t first = 0) const {
    std::vector<uint8_t> content(bytes);
    std::iota(content.begin(), content.end(), first);
    std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<ptrdiff_t>(bytes));
    return path;
  }

  static std::vector<uint8_t> Row(const SampleSource& source, size_t field, uint64_t id) {
    std::vector<uint8_t> row(source.fields()[field].row_bytes());
    source.FixedRows(field, {&id, 1}, row.data());
    return row;
  }

  std::string folder_;
};

const std::vector<Field> kCifar = {
    {.name = "label", .dtype = DType::kU8},
    {.name = "image", .dtype = DType::kU8, .row_shape = {1, 2, 2}},
};

using Bytes = std::vector<uint8_t>;

TEST_F(RecordFolder, FollowsTheFiles) {
  const auto source = Records({Write("a", 3 + 2 * 5), Write("b", 3 + 5, 100)}, kCifar, 3).value();
  ASSERT_EQ(source->size(), 3u);
  EXPECT_TRUE(source->in_memory());
  ASSERT_EQ(source->fields().size(), 2u);
  EXPECT_EQ(source->fields()[0].name, "image") << "the image comes first";
  EXPECT_EQ(source->label(), 1u);
  EXPECT_EQ(Row(*source, 0, 0), (Bytes{4, 5, 6, 7}));
  EXPECT_EQ(Row(*source, 0, 1), (Bytes{9, 10, 11, 12}));
  EXPECT_EQ(Row(*source, 0, 2), (Bytes{104, 105, 106, 107}));
  EXPECT_EQ(source->LabelOf(1), 8);
  EXPECT_EQ(source->LabelOf(2), 103);
  EXPECT_EQ(source->Describe(), "records(image: 3 × uint8 (1, 2, 2), label: 3 × uint8)");
}

TEST_F(RecordFolder, OtherFieldsStayInOrder) {
  const std::vector<Field> record = {{.name = "tokens", .dtype = DType::kU16, .row_shape = {2}},
                                     {.name = "weight", .dtype = DType::kU8}};
  const auto source = Records({Write("a", 10)}, record).value();
  EXPECT_FALSE(source->label());
  EXPECT_EQ(Row(*source, 0, 1), (Bytes{5, 6, 7, 8})) << "of any alignment";
  EXPECT_EQ(Row(*source, 1, 1), (Bytes{9}));
}

TEST_F(RecordFolder, RecordsStayWhenTheirFileIsCut) {
  const std::string path = Write("a", 1 << 20);
  const auto source = Records({path}, {{.name = "image", .row_shape = {1 << 18}}}).value();
  std::filesystem::resize_file(path, 0);
  Bytes wanted(1 << 18);
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(Row(*source, 0, 3), wanted);
}

TEST_F(RecordFolder, ACutFileIsRefusedWithThePlace) {
  const std::string whole = Write("whole", 10), cut = Write("cut", 14);
  const Error error = Records({whole, cut}, kCifar).error();
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.file, cut);
  EXPECT_EQ(error.offset, 10u);
  EXPECT_THAT(error.cause, ::testing::HasSubstr("4 bytes of 5"));
  EXPECT_EQ(Records({whole}, kCifar, 2).error().offset, 7u) << "records begin at 2 and 7";
}

TEST_F(RecordFolder, RecordsAreExpectedBehindTheOffset) {
  const std::string path = Write("a", 10);
  EXPECT_EQ(Records({path}, kCifar, 5).value()->size(), 1u);
  for (const uint64_t offset : {uint64_t{10}, uint64_t{11}, ~uint64_t{0}}) {
    const Error error = Records({path}, kCifar, offset).error();
    EXPECT_EQ(error.code, Code::kDataLoss);
    EXPECT_EQ(error.offset, 10u);
  }
}

TEST_F(RecordFolder, WhatCannotBeReadIsRefused) {
  EXPECT_EQ(Records({}, kCifar).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Records({folder_ + "/none"}, kCifar).error().code, Code::kNotFound);
  EXPECT_EQ(Records({folder_}, kCifar).error().code, Code::kInvalidArgument);
  EXPECT_FALSE(Records({Write("empty", 0)}, kCifar).ok());
  const std::string path = Write("a", 10);
  EXPECT_EQ(Records({path}, {}).error().code, Code::kInvalidArgument);
  EXPECT_FALSE(Records({path}, {{.name = ""}}).ok());
  EXPECT_FALSE(Records({path}, {{.name = "a"}, {.name = "a"}}).ok());
  EXPECT_FALSE(Records({path}, {{.name = "a", .row_shape = {0}}}).ok());
  EXPECT_FALSE(Records({path}, {{.name = "a", .row_shape = {1 << 30, 1 << 30, 1 << 30}}}).ok());
  EXPECT_FALSE(Records({path}, std::vector<Field>(2000, {.name = "a"})).ok());
}

TEST_F(RecordFolder, PointersOfGitLfsAreRefused) {
  const std::string path = Write("pointer", 0);
  std::ofstream(path) << "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n";
  for (const uint64_t offset : {uint64_t{0}, uint64_t{10}, uint64_t{5000}}) {
    EXPECT_EQ(Records({path}, {{.name = "x"}}, offset).error().advice,
              "Run `git lfs pull` in its repository");
  }
}

TEST_F(RecordFolder, FilesThatDoNotFitIntoMemoryAreRefused) {
  const std::string path = Write("sparse", 0);
  std::error_code error;
  std::filesystem::resize_file(path, uint64_t{1} << 43, error);
  if (error) GTEST_SKIP() << "the file system has no files of this size";
  EXPECT_EQ(Records({path}, {{.name = "image"}}).error().code, Code::kResourceExhausted);
}

TEST(RecordText, IsWhatWasParsed) {
  const std::string text = "label uint8, image uint8 3 32 32, größe float32 2";
  const std::vector<Field> record = ParseRecord(text).value();
  ASSERT_EQ(record.size(), 3u);
  EXPECT_EQ(record[1].name, "image");
  EXPECT_EQ(record[1].dtype, DType::kU8);
  EXPECT_EQ(record[1].row_shape, (std::vector<int64_t>{3, 32, 32}));
  EXPECT_EQ(RecordText(record), text);
}

TEST(RecordText, RefusesOthers) {
  for (const char* text : {"", "label", "label ", " uint8", "label int", "label uint8 x",
                           "label uint8 -1", "label uint8 3,32", "label uint8 99999999999999999999",
                           "label uint8,image uint8", "label uint8, , image uint8", "a\nb uint8"}) {
    const Result<std::vector<Field>> record = ParseRecord(text);
    ASSERT_FALSE(record.ok()) << text;
    EXPECT_EQ(record.error().code, Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace stoker
