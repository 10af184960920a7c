#include "engine/metrics/stats.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "engine/metrics/worker_counters.h"

namespace stoker {
namespace {

TEST(Stats, AddUpOverLoaders) {
  LoaderStats all;
  all.samples = 1;
  all.batches = 2;
  all.wait_ns = 10;
  all.waited = {.storage_ns = 1, .decode_ns = 2, .map_ns = 5, .copy_ns = 3, .other_ns = 4};
  all.consumer_ns = 5;
  all.worker_busy_ns = {7, 8};
  all.clocked = {.wall_ns = 10, .cpu_ns = 5};
  all.depth = 9;
  all.decisions = {{.to = 1, .at_ns = 100}, {.to = 2, .at_ns = 300}};
  all.decisions_made = 20;
  all.memory_used = 1'000;
  LoaderStats one;
  one.samples = 10;
  one.batches = 20;
  one.wait_ns = 100;
  one.waited = {.storage_ns = 10, .decode_ns = 20, .map_ns = 50, .copy_ns = 30, .other_ns = 40};
  one.consumer_ns = 50;
  one.worker_busy_ns = {70, 80, 90};
  one.clocked = {.wall_ns = 100, .cpu_ns = 83};
  one.depth = 4;
  one.depth_given = one.reads_given = true;
  one.decisions = {{.to = 3, .at_ns = 200}};
  one.decisions_made = 1;
  one.memory_used = 1'000;
  AddStats(all, one);
  EXPECT_EQ(all.samples, 11);
  EXPECT_EQ(all.batches, 22);
  EXPECT_EQ(all.wait_ns, 110);
  EXPECT_EQ(all.waited.sum(), 165);
  EXPECT_EQ(all.waited.map_ns, 55);
  EXPECT_EQ(all.waited.copy_ns, 33);
  EXPECT_EQ(all.consumer_ns, 55);
  EXPECT_EQ(all.worker_busy_ns, (std::vector<uint64_t>{77, 88, 90}));
  EXPECT_DOUBLE_EQ(all.clocked.share(), 0.8);
  EXPECT_EQ(all.depth, 4);
  EXPECT_TRUE(all.depth_given && all.reads_given);
  EXPECT_FALSE(all.workers_given);
  ASSERT_EQ(all.decisions.size(), 2);
  EXPECT_EQ(all.decisions[0].to, 3);
  EXPECT_EQ(all.decisions[1].to, 2);
  EXPECT_EQ(all.decisions_made, 21);
  EXPECT_EQ(all.memory_used, 1'000);
}

// Reading the clock is a system call, so it is not made for each sample. The times are irregular,
// so that they are not in step with a CPU limit.
TEST(WorkerCounters, ReadTheCpuClockAtIrregularTimes) {
  WorkerCounters counters;
  EXPECT_TRUE(counters.MayClock()) << "one that has done little is known, too";
  std::set<int> between;
  int looks = 0;
  for (int since = 1, i = 0; i < 16'000; ++i, ++since) {
    if (!counters.MayClock()) continue;
    between.insert(std::exchange(since, 0));
    ++looks;
  }
  EXPECT_NEAR(looks, 1000, 200);
  EXPECT_GT(between.size(), 16u);
  counters.AddClocked({.wall_ns = 200, .cpu_ns = 50});
  LoaderStats stats;
  EXPECT_EQ(stats.clocked.share(), 1) << "nothing is known";
  counters.AddTo(stats);
  EXPECT_EQ(stats.clocked.share(), 0.25);
}

}  // namespace
}  // namespace stoker
