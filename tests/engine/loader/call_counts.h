// Counts allocations, locks and kernel entries per shared library. A program linked with
// call_counts.cc has those functions of libc replaced. Glibc only; not under a sanitizer. Kernel
// entries without libc (liburing's) are not counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stoker::testing {

struct Calls {
  uint64_t allocations = 0;  // malloc, calloc, realloc, aligned_alloc, operator new
  uint64_t locks = 0;        // pthread_mutex_lock, std::mutex
  uint64_t reads = 0;        // open, fstat, pread, read, close
  uint64_t waits = 0;        // waiting and waking: futex, condition variables, yields, sleeps
  uint64_t maps = 0;         // mmap, munmap, madvise
};

// Calls by library: the nearest library up the stack that is neither libc nor libstdc++ nor the
// code that counts. Names have no folder and version: "libjpeg.so".
std::map<std::string, Calls> StopCounting();
void StartCounting();  // from zero, in all threads

}  // namespace stoker::testing
