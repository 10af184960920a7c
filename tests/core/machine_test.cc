#include "core/system/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace stoker {
namespace {

// A simulated /proc and /sys/fs/cgroup.
class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    std::string pattern = (std::filesystem::path(testing::TempDir()) / "machine_XXXXXX").string();
    base_ = mkdtemp(pattern.data());
    root_ = {(base_ / "proc").string(), (base_ / "cgroup").string()};
    Write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n");
  }
  ~MachineTest() override { std::filesystem::remove_all(base_); }

  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((base_ / name).parent_path());
    std::ofstream(base_ / name) << text;
  }

  std::filesystem::path base_;
  MachineRoot root_;
};

TEST_F(MachineTest, WithoutCgroupsTheMachineIsTheLimit) {
  EXPECT_EQ(AvailableMemory(root_), uint64_t{8000000} * 1024);
  EXPECT_GE(AllottedCores(root_), 1);
}

TEST_F(MachineTest, V2LimitsOfTheGroupAndItsAncestorsApply) {
  Write("proc/self/cgroup", "0::/job/rank0\n");
  Write("cgroup/job/cpu.max", "100000 100000\n");
  Write("cgroup/job/rank0/cpu.max", "max 100000\n");
  Write("cgroup/job/memory.max", "1000000000\n");
  Write("cgroup/job/memory.current", "700000000\n");
  Write("cgroup/job/memory.stat", "anon 100\nfile 300000000\n");
  EXPECT_EQ(AllottedCores(root_), 1);
  EXPECT_EQ(AvailableMemory(root_), 600000000u) << "the page cache does not count as used";
  Write("cgroup/job/memory.stat", "anon 100\nfile 300000000\nshmem 50000000\n");
  EXPECT_EQ(AvailableMemory(root_), 550000000u) << "but files in memory do";
}

TEST_F(MachineTest, AFractionOfACoreCountsAsOne) {
  Write("proc/self/cgroup", "0::/\n");
  for (const char* quota : {"5000", "50000"}) {
    Write("cgroup/cpu.max", std::string(quota) + " 100000\n");
    EXPECT_EQ(AllottedCores(root_), 1) << quota;
    EXPECT_EQ(DefaultThreads(root_), 1) << quota;
  }
}

TEST_F(MachineTest, V1LimitsApply) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/job\n7:memory:/job\n");
  Write("cgroup/cpu/job/cpu.cfs_quota_us", "100000\n");
  Write("cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  Write("cgroup/memory/job/memory.limit_in_bytes", "500000000\n");
  Write("cgroup/memory/job/memory.usage_in_bytes", "600000000\n");
  EXPECT_EQ(AllottedCores(root_), 1);
  EXPECT_EQ(AvailableMemory(root_), 0u);
}

TEST_F(MachineTest, V1QuotaOfMinusOneIsNoLimit) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/\n");
  Write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(AllottedCores(root_), AllottedCores({"/nowhere", "/nowhere"}));
}

TEST_F(MachineTest, V2TightestOfThreeLevelsApplies) {
  Write("proc/self/cgroup", "0::/a/b/c\n");
  Write("cgroup/a/memory.max", "4000000000\n");
  Write("cgroup/a/memory.current", "1000000000\n");
  Write("cgroup/a/b/memory.max", "1500000000\n");
  Write("cgroup/a/b/memory.current", "600000000\n");
  Write("cgroup/a/b/c/memory.max", "max\n");
  Write("cgroup/a/b/c/memory.current", "600000000\n");
  EXPECT_EQ(AvailableMemory(root_), 900000000u);
  EXPECT_EQ(DefaultMemory(root_), 225000000u);
}

TEST_F(MachineTest, V1AncestorsApplyWithoutTheirPageCache) {
  Write("proc/self/cgroup", "7:memory:/job/rank0\n");
  Write("cgroup/memory/job/memory.limit_in_bytes", "2000000000\n");
  Write("cgroup/memory/job/memory.usage_in_bytes", "1900000000\n");
  Write("cgroup/memory/job/memory.stat", "cache 1\ntotal_cache 700000000\ntotal_rss 5\n");
  Write("cgroup/memory/job/rank0/memory.limit_in_bytes", "9223372036854771712\n");  // none
  Write("cgroup/memory/job/rank0/memory.usage_in_bytes", "1900000000\n");
  EXPECT_EQ(AvailableMemory(root_), 800000000u);
  Write("cgroup/memory/job/memory.stat", "total_shmem 100000000\ntotal_cache 700000000\n");
  EXPECT_EQ(AvailableMemory(root_), 700000000u);
}

TEST_F(MachineTest, AffinityMaskLimitsCores) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(AllottedCores(root_), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(AllottedCores(root_), CPU_COUNT(&all));
}

// The ranks are set through the environment, which other test processes do not see.
TEST_F(MachineTest, LocalRanksDivideCoresAndMemory) {
  const int cores = AllottedCores(root_);
  Write("proc/meminfo", "MemAvailable: 64000000 kB\n");
  for (const auto& [text, ranks] : std::map<std::string, int>{
           {"1", 1}, {"2", 2}, {"8", 8}, {"0", 1}, {"-3", 1}, {"", 1}, {"many", 1}, {"2x", 1}}) {
    setenv("LOCAL_WORLD_SIZE", text.c_str(), 1);
    EXPECT_EQ(RanksHere(), ranks) << text;
    EXPECT_EQ(DefaultThreads(root_), std::max(cores / ranks, 1)) << text;
    EXPECT_EQ(DefaultMemory(root_), (uint64_t{4} << 30) / static_cast<uint64_t>(ranks)) << text;
  }
  unsetenv("LOCAL_WORLD_SIZE");
  EXPECT_EQ(RanksHere(), 1);
  Write("proc/meminfo", "MemAvailable: 8000000 kB\n");
  EXPECT_EQ(DefaultMemory(root_), uint64_t{2000000} * 1024);
}

TEST(CheckThreads, AcceptsZeroTo256) {
  for (const int threads : {0, 1, 256}) EXPECT_TRUE(CheckThreads(threads).ok()) << threads;
  for (const int threads : {-1, 257}) {
    const Status status = CheckThreads(threads);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_EQ(status.error().Message(),
              "threads is " + std::to_string(threads) + ". Give 0 (the cores allotted) to 256.");
  }
}

TEST_F(MachineTest, IgnoresMalformedCgroupFiles) {
  Write("proc/self/cgroup", "garbage\n0:\n0::relative\n::::\n");
  Write("cgroup/cpu.max", "nonsense\n");
  Write("cgroup/memory.max", "max\n");
  EXPECT_EQ(AvailableMemory(root_), uint64_t{8000000} * 1024);
  EXPECT_GE(AllottedCores(root_), 1);
}

}  // namespace
}  // namespace stoker
