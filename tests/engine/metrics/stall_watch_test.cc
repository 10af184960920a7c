#include "engine/metrics/stall_watch.h"

#include <gtest/gtest.h>

#include "engine/metrics/stats.h"

namespace stoker {
namespace {

constexpr uint64_t kSecond = 1'000'000'000, kPatience = 30 * kSecond, kLookEvery = kSecond / 20;

// Returns how often it reports a stall in `seconds` of looks.
int Stalls(StallWatch& watch, uint64_t& now, uint64_t seconds, uint64_t state) {
  int stalls = 0;
  for (const uint64_t end = now + seconds * kSecond; now < end; now += kLookEvery) {
    stalls += watch.Poll(now, state) ? 1 : 0;
  }
  return stalls;
}

TEST(StallWatch, ReportsEachStallOnce) {
  StallWatch watch(kPatience);
  uint64_t now = 12345;
  watch.Begin();
  EXPECT_EQ(Stalls(watch, now, 29, 1), 0);
  EXPECT_EQ(Stalls(watch, now, 3600, 1), 1);
  EXPECT_EQ(Stalls(watch, now, 29, 2), 0);
  EXPECT_EQ(Stalls(watch, now, 2, 2), 1);
  watch.Begin();  // another wait
  EXPECT_EQ(Stalls(watch, now, 29, 2), 0);
  EXPECT_EQ(Stalls(watch, now, 2, 2), 1);
}

TEST(StallWatch, WhatMovesIsNoStall) {
  StallWatch watch(kPatience);
  uint64_t now = 0;
  watch.Begin();
  for (uint64_t state = 0; state < 1000; ++state) EXPECT_EQ(Stalls(watch, now, 25, state), 0);
}

// Time passes at once after SIGSTOP, a debugger, or a machine that was asleep.
TEST(StallWatch, TimeInWhichNobodyLookedHardlyCounts) {
  StallWatch watch(kPatience);
  uint64_t now = 0;
  watch.Begin();
  EXPECT_EQ(Stalls(watch, now, 20, 7), 0);
  now += 86'400 * kSecond;
  EXPECT_EQ(Stalls(watch, now, 8, 7), 0);
  EXPECT_EQ(Stalls(watch, now, 3, 7), 1);
}

TEST(StallWatch, WithoutPatienceThereAreNone) {
  StallWatch watch(0);
  uint64_t now = 0;
  watch.Begin();
  EXPECT_EQ(Stalls(watch, now, 3600, 1), 0);
}

TEST(StallWatch, StatisticsHaveTheLastStallAndTheirNumber) {
  StallWatch watch(kPatience);
  LoaderStats stats;
  watch.AddTo(stats);
  EXPECT_EQ(stats.stalls, 0u);
  EXPECT_EQ(stats.stall, "");
  watch.Report("first");
  watch.Report("second");
  watch.AddTo(stats);
  EXPECT_EQ(stats.stalls, 2u);
  EXPECT_EQ(stats.stall, "second");
}

}  // namespace
}  // namespace stoker
