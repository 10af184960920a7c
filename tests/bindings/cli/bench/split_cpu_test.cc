#include <gtest/gtest.h>

#include "bindings/cli/bench/runner.h"

namespace stoker {
namespace {

void ExpectSum(const CpuSplit& split, double total) {
  EXPECT_NEAR(split.read + split.decode + split.resize + split.augment + split.mix + split.rest,
              total, 1e-9);
}

TEST(SplitCpu, TakesWallTimeAsCpuWhereWorkersHaveACoreEach) {
  const CpuSplit split =
      SplitCpu({.total = 10, .read = 1, .consumer = 0.5, .decode = 5, .resize = 2, .work = 8});
  EXPECT_DOUBLE_EQ(split.read, 1);
  EXPECT_DOUBLE_EQ(split.decode, 5);
  EXPECT_DOUBLE_EQ(split.resize, 2);
  EXPECT_DOUBLE_EQ(split.rest, 2);
  ExpectSum(split, 10);
}

TEST(SplitCpu, ScalesWhereWorkersWaitedForACore) {
  const CpuSplit split =
      SplitCpu({.total = 11, .read = 1, .consumer = 1, .decode = 20, .resize = 12, .work = 36});
  EXPECT_DOUBLE_EQ(split.decode, 5);  // 20 × (11 − 1 − 1) / 36
  EXPECT_DOUBLE_EQ(split.resize, 3);
  EXPECT_DOUBLE_EQ(split.rest, 2);
  ExpectSum(split, 11);
}

TEST(SplitCpu, NoPartIsNegativeWhateverTheClocksSay) {
  ExpectSum(SplitCpu({}), 0);
  ExpectSum(SplitCpu({.total = 1, .read = 2, .decode = 1, .resize = 1, .work = 2}), 1);
  ExpectSum(SplitCpu({.total = 1, .consumer = 2, .decode = 1, .work = 1}), 1);
  const CpuSplit split = SplitCpu({.total = 3, .decode = 4, .work = 4});
  EXPECT_DOUBLE_EQ(split.decode, 3);
  EXPECT_DOUBLE_EQ(split.rest, 0);
}

}  // namespace
}  // namespace stoker
