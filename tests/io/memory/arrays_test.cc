#include "io/memory/arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stoker {
namespace {

using ::testing::HasSubstr;

constexpr std::array<uint8_t, 24> kBytes = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                            12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};

ArrayColumn Images() { return {"image", DType::kU8, {2, 3}, kBytes.data(), 4}; }
ArrayColumn Labels() { return {"label", DType::kU16, {}, kBytes.data() + 1, 4}; }

TEST(Arrays, HoldTheRowsOfTheirColumns) {
  const auto source = Arrays({Images(), Labels()}, nullptr).value();
  EXPECT_EQ(source->size(), 4u);
  EXPECT_TRUE(source->classes().empty());
  EXPECT_TRUE(source->label());
  EXPECT_FALSE(Arrays({Images()}, nullptr).value()->label());
  EXPECT_EQ(source->Describe(), "arrays(image: 4 × uint8 (2, 3), label: 4 × uint16)");
  ASSERT_EQ(source->fields().size(), 2u);
  EXPECT_EQ(source->View(0, 3).data(), kBytes.data() + 18);
  EXPECT_EQ(source->View(1, 3).data(), kBytes.data() + 7);
  EXPECT_LT(source->memory_bytes(), 1000u) << "the rows are the caller's";
  std::string path = "old";
  source->PathOf(source->RangeOf(0).file, path);
  EXPECT_EQ(path, "");
}

TEST(Arrays, AcceptNegativeAndZeroStrides) {
  ArrayColumn backwards = Images();
  backwards.data = kBytes.data() + 18;
  backwards.row_stride = -6;
  ArrayColumn same = Labels();
  same.row_stride = 0;
  const auto source = Arrays({backwards, same}, nullptr).value();
  EXPECT_EQ(source->View(0, 0).data(), kBytes.data() + 18);
  EXPECT_EQ(source->View(0, 3).data(), kBytes.data());
  EXPECT_EQ(source->View(1, 3).data(), kBytes.data() + 1);
  ArrayColumn apart = Labels();
  apart.row_stride = 5;
  EXPECT_EQ(Arrays({apart}, nullptr).value()->View(0, 2).data(), kBytes.data() + 11);
}

uint64_t PrintOf(ArrayColumn column) {
  return Arrays({std::move(column)}, nullptr).value()->Fingerprint();
}

TEST(Arrays, FingerprintCoversTypesShapesAndContents) {
  const uint64_t print = PrintOf(Images());
  EXPECT_NE(print, 0u);
  auto same = kBytes;
  ArrayColumn elsewhere = Images();
  elsewhere.data = same.data();
  EXPECT_EQ(PrintOf(elsewhere), print) << "where they lie does not matter";
  for (size_t i = 0; i < same.size(); ++i) {
    same[i] ^= 1;
    EXPECT_NE(PrintOf(elsewhere), print) << "byte " << i;
    same[i] ^= 1;
  }
  ArrayColumn other = Images();
  other.row_shape = {3, 2};
  EXPECT_NE(PrintOf(other), print);
  other = Images();
  other.dtype = DType::kI8;
  EXPECT_NE(PrintOf(other), print);
  other = Images();
  other.samples = 3;
  EXPECT_NE(PrintOf(other), print);
  const auto both = Arrays({Images(), Labels()}, nullptr).value()->Fingerprint();
  ArrayColumn labels = Labels();
  labels.data = kBytes.data() + 2;
  EXPECT_NE(both, print);
  EXPECT_NE(both, Arrays({Images(), labels}, nullptr).value()->Fingerprint());
}

TEST(Arrays, FingerprintIgnoresGapsBetweenRows) {
  std::vector<uint8_t> apart(40, 7);
  for (size_t row = 0; row < 4; ++row) {
    std::copy_n(kBytes.data() + 6 * row, 6, apart.data() + 10 * row);
  }
  ArrayColumn column = Images();
  column.data = apart.data();
  column.row_stride = 10;
  EXPECT_EQ(PrintOf(column), PrintOf(Images()));
}

// The fingerprint of a megabyte covers some of its rows, the first and the last among them, whether
// there are many short rows or few long ones.
TEST(Arrays, FingerprintSamplesLargeArraysEverywhere) {
  constexpr uint64_t kMany = 1 << 20;
  std::vector<uint8_t> bytes(kMany);
  for (const int64_t row : {int64_t{1}, int64_t{24}, int64_t{4096}, int64_t{150'000}}) {
    const ArrayColumn column{
        "image", DType::kU8, {row}, bytes.data(), kMany / static_cast<uint64_t>(row)};
    const uint64_t all = column.samples * column.row_bytes();
    const uint64_t print = PrintOf(column);
    for (const uint64_t at : {uint64_t{0}, all - 1}) {
      bytes[at] ^= 1;
      EXPECT_NE(PrintOf(column), print) << "byte " << at << " of rows of " << row;
      bytes[at] ^= 1;
    }
    // A change of any eighth of them is noticed: gaps are shorter.
    for (uint64_t begin = 0; begin + kMany / 8 <= all && row < 150'000; begin += kMany / 8) {
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(begin), kMany / 8, uint8_t{1});
      EXPECT_NE(PrintOf(column), print) << "from " << begin << " of rows of " << row;
      std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    }
  }
}

// Each row is a byte on a page of its own, as in a column of a mapped file of records.
TEST(Arrays, FingerprintTouchesFewPages) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr uint64_t kRows = 32'768;
  void* memory =
      mmap(nullptr, kRows * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, kRows * page, MADV_NOHUGEPAGE);
  ArrayColumn column{"label", DType::kU8, {}, static_cast<const uint8_t*>(memory), kRows};
  column.row_stride = static_cast<int64_t>(page);
  EXPECT_NE(PrintOf(column), 0u);
  std::vector<unsigned char> resident(kRows);
  ASSERT_EQ(mincore(memory, kRows * page, resident.data()), 0);
  const auto touched =
      std::count_if(resident.begin(), resident.end(), [](unsigned char c) { return (c & 1) != 0; });
  EXPECT_GT(touched, 0);
  EXPECT_LE(touched, 1024);

  const std::vector<uint8_t> dense(kRows);
  column.data = dense.data();
  column.row_stride = 1;
  const uint64_t together = PrintOf(column);
  column.data = static_cast<const uint8_t*>(memory);
  column.row_stride = static_cast<int64_t>(page);
  EXPECT_EQ(PrintOf(column), together) << "how far apart rows lie does not matter";
  munmap(memory, kRows * page);
}

TEST(Arrays, FingerprintHandlesZeroStrides) {
  ArrayColumn column = Images();
  column.samples = uint64_t{1} << 60;  // one row repeated
  column.row_stride = 0;
  EXPECT_NE(PrintOf(column), PrintOf(Images()));
}

TEST(Arrays, ReleaseTheOwnerWithTheSource) {
  auto memory = std::make_shared<std::vector<uint8_t>>(24);
  const std::weak_ptr<std::vector<uint8_t>> watched = memory;
  ArrayColumn column = Images();
  column.data = memory->data();
  auto source = Arrays({column}, std::move(memory)).value();
  EXPECT_FALSE(watched.expired());
  source.reset();
  EXPECT_TRUE(watched.expired());
}

std::string Refusal(std::vector<ArrayColumn> columns) {
  const auto source = Arrays(std::move(columns), nullptr);
  if (source.ok()) return "accepted";
  EXPECT_EQ(source.error().code, Code::kInvalidArgument);
  return source.error().ToString();
}

TEST(Arrays, ErrorsNameTheBadColumn) {
  EXPECT_EQ(Refusal({Images(), Labels()}), "accepted");
  EXPECT_THAT(Refusal({}), HasSubstr("0 arrays"));
  EXPECT_THAT(Refusal({Images(), Labels(), Labels()}), HasSubstr("3 arrays"));
  EXPECT_THAT(Refusal({Images(), Images()}), HasSubstr("'image' was given twice"));
  const auto changed = [](auto change) {
    ArrayColumn column = Labels();
    change(column);
    return Refusal({Images(), column});
  };
  EXPECT_THAT(changed([](auto& c) { c.name = ""; }), HasSubstr("no name"));
  EXPECT_THAT(changed([](auto& c) { c.samples = 3; }), HasSubstr("3 samples, but 'image' has 4"));
  EXPECT_THAT(changed([](auto& c) { c.samples = 0; }), HasSubstr("'label' has no samples"));
  EXPECT_THAT(changed([](auto& c) { c.data = nullptr; }), HasSubstr("no data"));
  EXPECT_THAT(changed([](auto& c) { c.dtype = DType{}; }), HasSubstr("element type"));
  EXPECT_THAT(changed([](auto& c) {
                c.dtype = DType::kString;
                c.row_shape = {2};
              }),
              HasSubstr("several strings"));
  EXPECT_THAT(changed([](auto& c) { c.row_shape = {2, 0}; }), HasSubstr("dimension of 0"));
  EXPECT_THAT(changed([](auto& c) { c.row_shape = {-1}; }), HasSubstr("dimension of -1"));
  EXPECT_THAT(changed([](auto& c) { c.row_shape.assign(8, 1); }), HasSubstr("8 dimensions"));
  EXPECT_THAT(changed([](auto& c) { c.row_shape.assign(7, 1 << 20); }),
              HasSubstr("too large for any memory"));
  EXPECT_THAT(changed([](auto& c) { c.row_shape = {INT64_MAX}; }),
              HasSubstr("too large for any memory"));
}

}  // namespace
}  // namespace stoker
