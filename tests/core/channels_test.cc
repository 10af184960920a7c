#include "core/batch/channels.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

TEST(Channels, NamesAreRead) {
  for (const Channels channels : {Channels::kRgb, Channels::kGray, Channels::kRgba,
                                  StoredChannels(1), StoredChannels(kMostChannels)}) {
    EXPECT_EQ(ParseChannels(NameOf(channels)).value(), channels);
  }
  EXPECT_EQ(NameOf(StoredChannels(13)), "13");
  for (const char* text : {"", "0", "65", "-1", "+4", "4.0", "4 ", "99999999999", "bgr", "RGB"}) {
    const Error error = ParseChannels(text).error();
    EXPECT_EQ(error.cause, "channels is \"" + std::string(text) + "\"");
    EXPECT_NE(error.advice.find("\"rgba\""), std::string::npos);
  }
  const Error unchanged = ParseChannels("unchanged").error();
  EXPECT_EQ(unchanged.cause, "channels is \"unchanged\"");
  EXPECT_EQ(unchanged.advice,
            "The rows of a batch have one shape: give the number of channels that every file has, "
            "1 to 64");
}

TEST(Channels, AreCounted) {
  EXPECT_EQ(CountOf(Channels::kGray), 1);
  EXPECT_EQ(CountOf(Channels::kRgb), 3);
  EXPECT_EQ(CountOf(Channels::kRgba), 4);
  EXPECT_EQ(CountOf(Channels::kUnchanged), 0);
  EXPECT_EQ(CountOf(StoredChannels(5)), 5);
  EXPECT_TRUE(AreStored(Channels::kUnchanged) && AreStored(StoredChannels(1)));
  EXPECT_FALSE(AreStored(Channels::kRgba));
}

}  // namespace
}  // namespace stoker
