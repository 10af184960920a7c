#include "tests/io/readers/count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

// These are in a file of their own: a compiler that sees them and their callers together takes the
// pair of malloc and delete for a mistake.

namespace {
std::atomic<uint64_t> count{0};
}

void* operator new(size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace stoker::testing {

uint64_t AllocationsSoFar() { return count.load(std::memory_order_relaxed); }

}  // namespace stoker::testing
