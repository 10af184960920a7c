// What the translated kernels of this process have done.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stoker::testing::ptx {

struct LaunchTotals {
  uint64_t launches = 0;
  uint64_t stored = 0;  // bytes of global memory
  // Instructions: of all threads, and of the busiest thread of each warp. If the threads of a warp
  // never diverged, the warp would execute a 32nd of the first number, and the second one; if they
  // do, it executes more than the second.
  uint64_t of_all_threads = 0, of_busiest_threads = 0;
};

// By the kernel's title. Only kernels that have been launched.
const std::map<std::string, LaunchTotals>& Launches();
void ForgetLaunches();

}  // namespace stoker::testing::ptx
