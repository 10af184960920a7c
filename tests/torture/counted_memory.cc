#include "tests/torture/counted_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

// glibc's own functions, under their other names.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming): glibc's
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
// NOLINTEND(readability-identifier-naming)
}

namespace {

std::atomic<int64_t> held{0}, peak{0};

void Add(int64_t bytes) {
  const int64_t now = held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t before = peak.load(std::memory_order_relaxed);
  while (before < now && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

void* Counted(void* memory) {
  if (memory != nullptr) Add(static_cast<int64_t>(malloc_usable_size(memory)));
  return memory;
}

void Uncount(void* memory) {
  if (memory != nullptr) Add(-static_cast<int64_t>(malloc_usable_size(memory)));
}

}  // namespace

extern "C" {
void* malloc(size_t size) { return Counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return Counted(__libc_calloc(count, size)); }
void* realloc(void* memory, size_t size) {
  Uncount(memory);
  return Counted(__libc_realloc(memory, size));
}
void* memalign(size_t alignment, size_t size) { return Counted(__libc_memalign(alignment, size)); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  Uncount(memory);
  __libc_free(memory);
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what the system says
  void* const mapped =
      reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
  if (mapped != MAP_FAILED && (flags & MAP_ANONYMOUS) != 0) Add(static_cast<int64_t>(size));
  return mapped;
}
int munmap(void* at, size_t size) {
  Add(-static_cast<int64_t>(size));
  return static_cast<int>(syscall(SYS_munmap, at, size));
}
}

namespace stoker::testing {

int64_t HeldBytes() { return held.load(std::memory_order_relaxed); }
int64_t PeakBytes() { return peak.load(std::memory_order_relaxed); }
void ResetPeak() { peak.store(held.load(std::memory_order_relaxed), std::memory_order_relaxed); }

}  // namespace stoker::testing
