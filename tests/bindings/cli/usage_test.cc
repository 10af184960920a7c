#include "bindings/cli/command/usage.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stoker::cli {
namespace {

const std::vector<std::string> kOptions = {"--help",  "--batch-size", "--epochs", "--seed",
                                           "--depth", "--threads",    "--reads",  "--reader"};

TEST(Nearest, FindsTheOptionProbablyMeant) {
  EXPECT_EQ(Nearest("--epoch", kOptions), "--epochs");
  EXPECT_EQ(Nearest("-epochs", kOptions), "--epochs");
  EXPECT_EQ(Nearest("--Epochs=3", kOptions), "--epochs");
  EXPECT_EQ(Nearest("--batch_size", kOptions), "--batch-size");
  EXPECT_EQ(Nearest("--batch", kOptions), "--batch-size");
  EXPECT_EQ(Nearest("--sede", kOptions), "--seed");
  EXPECT_EQ(Nearest("--raeds", kOptions), "--reads");
  EXPECT_EQ(Nearest("--thread", kOptions), "--threads");
}

TEST(Nearest, IsEmptyWhenNoOptionIsSimilar) {
  EXPECT_EQ(Nearest("--lr", kOptions), "");
  EXPECT_EQ(Nearest("--frobnicate", kOptions), "");
  EXPECT_EQ(Nearest("-x", kOptions), "");
  EXPECT_EQ(Nearest("--", kOptions), "");
  EXPECT_EQ(Nearest("", kOptions), "");
  EXPECT_EQ(Nearest("--epochs", {}), "");
}

}  // namespace
}  // namespace stoker::cli
