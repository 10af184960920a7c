// The resources that this process may use: its cgroup's share, not the whole machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/result/result.h"

namespace stoker {

// The folders of the system's files; tests use a folder of their own.
struct MachineRoot {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// The number of CPUs in the affinity mask, or a cgroup's (v2 or v1) CPU quota, rounded up, if that
// is less. At least 1.
int AllottedCores(const MachineRoot& root = {});

// Checks an option `threads`: 0 (all cores allotted) to 256; returns InvalidArgument otherwise.
Status CheckThreads(int threads);

// The number of this job's processes on the machine: LOCAL_WORLD_SIZE, which torchrun and others
// set; 1 if it is missing or invalid.
int RanksHere();

// This process' default share of the allotted cores, at least one, and of the memory: a quarter of
// the available memory, at most 4 GiB, divided among the ranks.
int DefaultThreads(const MachineRoot& root = {});
uint64_t DefaultMemory(const MachineRoot& root = {});

// Bytes that may still be used: the kernel's available memory, or less if a cgroup (v2 or v1) has a
// tighter limit.
uint64_t AvailableMemory(const MachineRoot& root = {});

// How many descriptors this process may have open (RLIMIT_NOFILE).
uint32_t DescriptorLimit();

// The cgroup pids limit (v2 or v1) that is closest to being reached; it counts threads.
struct CgroupThreads {
  uint64_t most = 0;
  uint64_t there = 0;
};
std::optional<CgroupThreads> ThreadsOfCgroup(const MachineRoot& root = {});

}  // namespace stoker
