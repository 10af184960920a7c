#include "core/result/byte_size.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace stoker {
namespace {

TEST(ByteSize, ReadsNumbersWithUnits) {
  EXPECT_EQ(ParseByteSize("0B"), 0U);
  EXPECT_EQ(ParseByteSize("17B"), 17U);
  EXPECT_EQ(ParseByteSize("500MB"), 500'000'000U);
  EXPECT_EQ(ParseByteSize("8GiB"), uint64_t{8} << 30);
  EXPECT_EQ(ParseByteSize("2TB"), 2'000'000'000'000U);
  for (const char* const text : {"", "8", "GiB", "8 GiB", "8G", "8gib", "-1B", "+1B", "1.5GiB",
                                 "8GiB ", "9999999TiB", "99999999999999999999B", "0x8B"}) {
    EXPECT_EQ(ParseByteSize(text), std::nullopt) << text;
  }
}

TEST(ByteSize, WritesTheLargestUnit) {
  EXPECT_EQ(ByteSizeText(0), "0B");
  EXPECT_EQ(ByteSizeText(1000), "1kB");
  EXPECT_EQ(ByteSizeText(1024), "1KiB");
  EXPECT_EQ(ByteSizeText(uint64_t{8} << 30), "8GiB");
  EXPECT_EQ(ByteSizeText(500'000'000), "500MB");
  EXPECT_EQ(ByteSizeText(500'000'001), "500000001B");
  for (uint64_t bytes = 1; bytes < uint64_t{1} << 60; bytes = bytes * 3 + bytes % 7) {
    EXPECT_EQ(ParseByteSize(ByteSizeText(bytes)), bytes);
  }
}

}  // namespace
}  // namespace stoker
