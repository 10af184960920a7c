#include "engine/options/cache_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

using ::testing::HasSubstr;

TEST(CacheChoice, ReadsWhatItWrites) {
  EXPECT_FALSE(CacheChoice::Parse("").value());
  EXPECT_EQ(CacheChoice::Parse("ram:8GiB").value(), (CacheChoice{uint64_t{8} << 30, ""}));
  EXPECT_EQ(CacheChoice::Parse("dir:/a:200GB").value(), (CacheChoice{200'000'000'000, "/a"}));
  for (const std::string text : {"", "ram:8GiB", "ram:500MB", "dir:/scratch:200GB", "dir:a:b:1TiB",
                                 "dir: :1MiB", "ram:1048577B"}) {
    EXPECT_EQ(CacheChoice::Parse(text).value().ToString(), text);
  }
  EXPECT_EQ(CacheChoice::Parse("ram:1024MiB").value().ToString(), "ram:1GiB");
}

TEST(CacheChoice, SaysWhatIsWrong) {
  for (const std::string text :
       {"ram", "ram:", "8GiB", "ram:8", "ram:8 GiB", "ram:-8GiB", "ram:8gib", "ram:0GiB",
        "ram:1KiB", "ram:1.5GiB", "ram:99999999999999999999GiB", "ram:99999999TiB", "RAM:8GiB",
        "disk:/a:8GiB", "ram:GiB", "ram:+8GiB", "ram:/a:8GiB"}) {
    const auto choice = CacheChoice::Parse(text);
    ASSERT_FALSE(choice.ok()) << text;
    EXPECT_EQ(choice.error().code, Code::kInvalidArgument);
    EXPECT_THAT(choice.error().cause, HasSubstr("cache is \"" + text + "\""));
    EXPECT_THAT(choice.error().advice, HasSubstr("Give "));
  }
  for (const std::string text :
       {"dir:", "dir:/a", "dir::8GiB", "dir:8GiB", "dir:/a:", "dir:/a:8"}) {
    EXPECT_FALSE(CacheChoice::Parse(text).ok()) << text;
  }
  EXPECT_FALSE(CacheChoice::Parse(std::string("dir:/a\0b:8GiB", 13)).ok());
}

}  // namespace
}  // namespace stoker
