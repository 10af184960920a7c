#include "bindings/cli/text/progress.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

// Work on 1,000 samples, whose clock the test moves.
class PaceTest : public ::testing::Test {
 protected:
  // `samples` more are done, one at a time, each after `each`.
  void Work(uint64_t samples, Pace::Clock::duration each) {
    for (uint64_t i = 0; i < samples; ++i) Observe(1, each);
  }
  void Observe(uint64_t samples, Pace::Clock::duration after) {
    now_ += after;
    done_ += samples;
    pace_.Add(now_, {.done = done_, .total = 1000, .samples = done_});
  }
  std::string Text() const { return RateText(pace_) + LeftText(pace_); }

  Pace pace_;
  Pace::Clock::time_point now_{};
  uint64_t done_ = 0;
};

TEST_F(PaceTest, SaysNothingInTheFirstSecond) {
  EXPECT_EQ(Text(), "");
  Work(5, 100ms);
  EXPECT_EQ(Text(), "");
  Work(95, 100ms);
  EXPECT_EQ(Text(), ", 10 samples/s, 90 s left");
}

TEST_F(PaceTest, TellsNoTimeLeftWhileNothingMoves) {
  for (int i = 0; i < 20; ++i) Observe(0, 100ms);
  EXPECT_EQ(Text(), ", 0 samples/s");
  Work(200, 100ms);
  EXPECT_EQ(Text(), ", 10 samples/s, 80 s left");
  for (int i = 0; i < 200; ++i) Observe(0, 100ms);  // it stands still, and is asked for
  EXPECT_EQ(Text(), ", 0 samples/s");
}

TEST_F(PaceTest, LeavesAPauseOut) {
  Work(100, 100ms);
  Observe(1, 1h);
  EXPECT_EQ(Text(), ", 10 samples/s, 90 s left");
  Work(9, 100ms);  // less than a second later the rate is still that before the pause
  EXPECT_EQ(Text(), ", 10 samples/s, 89 s left");
  Work(90, 50ms);
  EXPECT_EQ(Text(), ", 18 samples/s, 44 s left");
}

TEST_F(PaceTest, TakesSlowSamplesForWhatTheyAre) {
  Work(3, 30s);
  EXPECT_EQ(Text(), ", 2.0 samples/min, 8 h 18 min left");
  Work(100, 30s);
  EXPECT_EQ(Text(), ", 2.0 samples/min, 7 h 28 min left");
}

TEST_F(PaceTest, FollowsTheRateOfTheLastSeconds) {
  Work(100, 10ms);
  EXPECT_EQ(Text(), "");
  Work(200, 100ms);
  EXPECT_EQ(Text(), ", 10 samples/s, 70 s left");
}

TEST(Progress, CountsTheTimeInLargeUnits) {
  const auto left = [](uint64_t total) {
    Pace pace;
    pace.Add(Pace::Clock::time_point(), {.done = 0, .total = total, .samples = 0});
    pace.Add(Pace::Clock::time_point(1s), {.done = 1, .total = total, .samples = 640});
    return RateText(pace) + LeftText(pace);
  };
  EXPECT_EQ(left(0), ", 640 samples/s");
  EXPECT_EQ(left(1), ", 640 samples/s, 1 s left");
  EXPECT_EQ(left(100), ", 640 samples/s, 99 s left");
  EXPECT_EQ(left(301), ", 640 samples/s, 5 min left");
  EXPECT_EQ(left(10'000), ", 640 samples/s, 2 h 46 min left");
  EXPECT_EQ(left(1'000'000), ", 640 samples/s, 12 days left");
}

}  // namespace
}  // namespace stoker::cli
