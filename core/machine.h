// What of the machine this process may use: its cgroup's share, not the machine's size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"

namespace stoker {

// Where the files are read from; tests give a folder of their own.
struct MachineRoot {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// Cores: the affinity mask's count, or less where a cgroup (v2 or v1) has a CPU quota, rounded up.
// At least 1.
int AllottedCores(const MachineRoot& root = {});

// The `threads` of options: 0, which stands for the cores allotted, to 256; else InvalidArgument.
Status CheckThreads(int threads);

// How many processes of this job share the machine: LOCAL_WORLD_SIZE of the environment, as
// torchrun and others set it. 1 where it says nothing of use.
int RanksHere();

// This process' share, where nothing else is asked for: of the cores allotted, at least one; and a
// quarter of the memory available, at most 4 GiB in all.
int DefaultThreads(const MachineRoot& root = {});
uint64_t DefaultMemory(const MachineRoot& root = {});

// Bytes that may still be used: what the kernel says is available, or less where a cgroup (v2 or
// v1) has a limit that is nearer.
uint64_t AvailableMemory(const MachineRoot& root = {});

// The pids limit of the cgroup (v2 or v1) that is nearest to being reached: it counts threads.
struct CgroupThreads {
  uint64_t most = 0;
  uint64_t there = 0;
};
std::optional<CgroupThreads> ThreadsOfCgroup(const MachineRoot& root = {});

}  // namespace stoker
