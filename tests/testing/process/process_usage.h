// Counts what this process holds now: descriptors, threads, memory.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace stoker::testing {

inline int EntriesOf(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<int>(std::distance(begin(entries), end(entries)));
}

inline int OpenDescriptors() { return EntriesOf("/proc/self/fd"); }
inline int LiveThreads() { return EntriesOf("/proc/self/task"); }

// Returns the number of threads once it is `wanted`, or the number that stays. A joined thread is
// listed for a moment longer, until the kernel has removed it.
inline int LiveThreadsDownTo(int wanted) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (LiveThreads() > wanted && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return LiveThreads();
}

// Returns bytes of memory: the whole address space, the resident part of it, and what malloc has
// given and free not taken back, by malloc's count (0 under sanitizers, which replace malloc).
// Memory that the program maps itself, as for batches, is not in the last.
struct MemoryUsage {
  uint64_t mapped = 0;
  uint64_t resident = 0;
  uint64_t allocated = 0;
};
inline MemoryUsage MemoryNow() {
  std::ifstream statm("/proc/self/statm");
  MemoryUsage pages;
  statm >> pages.mapped >> pages.resident;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const struct mallinfo2 heap = mallinfo2();
  return {pages.mapped * page, pages.resident * page, heap.uordblks + heap.hblkhd};
}

}  // namespace stoker::testing
