#include "io/remote/ini_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kText[] =
    "# of AWS' tools\n"
    "[default]\r\n"
    "aws_access_key_id=AKIA\r\n"
    "aws_secret_access_key = a=b+c/ \n"
    "s3 =\n"
    "  addressing_style = path\n"
    "; a comment = no value\n"
    "no assignment\n"
    "[profile work ]\n"
    "region = eu-west-1";

TEST(IniFile, HasTheValuesOfASection) {
  EXPECT_THAT(IniSection(kText, "default"),
              ElementsAre(Pair("aws_access_key_id", "AKIA"),
                          Pair("aws_secret_access_key", "a=b+c/"), Pair("s3", "")));
  EXPECT_THAT(IniSection(kText, "profile work"), ElementsAre(Pair("region", "eu-west-1")));
}

TEST(IniFile, HasNoneOfAnother) {
  EXPECT_THAT(IniSection(kText, "work"), IsEmpty());
  EXPECT_THAT(IniSection("", "default"), IsEmpty());
  EXPECT_THAT(IniSection("[default\na=b", "default"), IsEmpty());
  EXPECT_THAT(IniSection("[", ""), IsEmpty());
}

}  // namespace
}  // namespace stoker
