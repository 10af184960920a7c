#include "io/index/split_folders.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stoker {
namespace {

std::string Of(const std::vector<std::string>& classes) { return SplitWarning("data/", classes); }

TEST(SplitWarning, NamesTheFolderThatWasProbablyMeant) {
  EXPECT_EQ(Of({"test", "train", "val"}),
            "data/ holds test, train, val, which look like splits of a dataset, not classes. To "
            "use one of them, pass data/train");
  EXPECT_EQ(Of({"test1", "test2", "test3", "test4", "test5", "train1"}),
            "data/ holds test1, test2, test3, test4, test5, …, which look like splits of a "
            "dataset, not classes. To use one of them, pass data/train1");
  EXPECT_TRUE(Of({"Testing", "Training"}).ends_with(" data/Training"));
  EXPECT_TRUE(Of({"test", "validation"}).ends_with(" data/validation"));
  EXPECT_TRUE(Of({"train2017", "val2017"}).ends_with(" data/train2017"));
  EXPECT_TRUE(Of({"train"}).ends_with(" data/train"));
}

TEST(SplitWarning, IsEmptyForClasses) {
  EXPECT_EQ(Of({}), "");
  EXPECT_EQ(Of({"cat", "dog"}), "");
  EXPECT_EQ(Of({"car", "train"}), "");
  EXPECT_EQ(Of({"invalid", "valid"}), "");
  EXPECT_EQ(Of({"0", "1", "_"}), "");
}

TEST(PackedSplitWarning, SaysToPackThemAlone) {
  EXPECT_EQ(PackedSplitWarning("set", std::vector<std::string>{"train", "val"}),
            "set holds train, val, which look like splits of a dataset, not classes. To use one of "
            "them, pack its folder into a set of its own");
  EXPECT_EQ(PackedSplitWarning("set", std::vector<std::string>{"cat", "dog"}), "");
}

TEST(DescribePackedSets, SuggestsTheMostLikely) {
  const auto [cause, advice] =
      DescribePackedSets("sets/", std::vector<std::string>{"val", "train", "imagenet"});
  EXPECT_EQ(cause, "this folder is not a packed set; it holds packed sets: val, train, imagenet");
  EXPECT_EQ(advice, "To use one of them, pass sets/train");
}

}  // namespace
}  // namespace stoker
