#include "engine/core/machine.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

// A made-up /proc and /sys/fs/cgroup.
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
}

TEST_F(MachineTest, AFractionOfACoreIsStillOne) {
  Write("proc/self/cgroup", "0::/\n");
  Write("cgroup/cpu.max", "5000 100000\n");
  EXPECT_EQ(AllottedCores(root_), 1);
}

TEST_F(MachineTest, V1Limits) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/job\n7:memory:/job\n");
  Write("cgroup/cpu/job/cpu.cfs_quota_us", "100000\n");
  Write("cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  Write("cgroup/memory/job/memory.limit_in_bytes", "500000000\n");
  Write("cgroup/memory/job/memory.usage_in_bytes", "600000000\n");
  EXPECT_EQ(AllottedCores(root_), 1);
  EXPECT_EQ(AvailableMemory(root_), 0u);
}

TEST_F(MachineTest, V1WithoutALimitSaysMinusOne) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/\n");
  Write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(AllottedCores(root_), AllottedCores({"/nowhere", "/nowhere"}));
}

TEST(CheckThreads, FromNoneTo256) {
  for (const int threads : {0, 1, 256}) EXPECT_TRUE(CheckThreads(threads).ok()) << threads;
  for (const int threads : {-1, 257}) {
    const Status status = CheckThreads(threads);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_EQ(status.error().Message(),
              "threads is " + std::to_string(threads) + ". Give 0 (the cores allotted) to 256.");
  }
}

TEST_F(MachineTest, NonsenseIsNoLimit) {
  Write("proc/self/cgroup", "garbage\n0:\n0::relative\n::::\n");
  Write("cgroup/cpu.max", "nonsense\n");
  Write("cgroup/memory.max", "max\n");
  EXPECT_EQ(AvailableMemory(root_), uint64_t{8000000} * 1024);
  EXPECT_GE(AllottedCores(root_), 1);
}

}  // namespace
}  // namespace stoker
