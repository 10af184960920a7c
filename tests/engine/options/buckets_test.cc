#include "engine/options/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

using ::testing::HasSubstr;

TEST(Buckets, ReadWhatTheyWrite) {
  for (const std::string text :
       {"", "128", "128,256", "128:0.5,256", "1:1e-09,1048576:1e+09%1048576", "128:0.1,256:3%8",
        "7,7,7", "128:0,256"}) {
    EXPECT_EQ(Buckets::Parse(text).value().ToString(), text);
  }
  EXPECT_EQ(Buckets::Parse("128:1,256:2.50%1").value().ToString(), "128,256:2.5");
  std::string most = "1";
  for (size_t i = 1; i < Buckets::kMost; ++i) most += ",1";
  EXPECT_EQ(Buckets::Parse(most).value().all.size(), Buckets::kMost);
  EXPECT_FALSE(Buckets::Parse(most + ",1").ok());
}

TEST(Buckets, HaveAsManyRowsAsFit) {
  const Buckets buckets = Buckets::Parse("100,300%4").value();
  EXPECT_EQ(buckets.longest(), 300u);
  EXPECT_EQ(buckets.RowsOf(buckets.all[0], 1999, 1 << 20), 16u);
  EXPECT_EQ(buckets.RowsOf(buckets.all[1], 1999, 1 << 20), 4u);
  EXPECT_EQ(buckets.RowsOf(buckets.all[0], 1999, 7), 4u);
}

TEST(Buckets, SayWhatIsWrong) {
  for (const std::string text : {",",
                                 "128,",
                                 ",128",
                                 "128,,256",
                                 "128:",
                                 "128:0",
                                 "128:-1",
                                 "128:nan",
                                 "128:inf",
                                 "128:1e301",
                                 "0",
                                 "-1",
                                 "+1",
                                 " 1",
                                 "1 ",
                                 "1048577",
                                 "99999999999999999999",
                                 "1.5",
                                 "a",
                                 "128%",
                                 "128%0",
                                 "128%-1",
                                 "128%8%8",
                                 "128%8,256",
                                 "%8",
                                 "128:1:1",
                                 "128;8"}) {
    const auto buckets = Buckets::Parse(text);
    ASSERT_FALSE(buckets.ok()) << text;
    EXPECT_EQ(buckets.error().code, Code::kInvalidArgument);
    EXPECT_THAT(buckets.error().cause, HasSubstr(text));
    EXPECT_THAT(buckets.error().advice, HasSubstr("128:0.5,256%8"));
  }
}

}  // namespace
}  // namespace stoker
