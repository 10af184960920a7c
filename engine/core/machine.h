// What of the machine this process may use: its cgroup's share, not the machine's size.
#pragma once

#include <cstdint>
#include <string>

#include "engine/core/result.h"

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

// Bytes that may still be used: what the kernel says is available, or less where a cgroup (v2 or
// v1) has a limit that is nearer.
uint64_t AvailableMemory(const MachineRoot& root = {});

}  // namespace stoker
