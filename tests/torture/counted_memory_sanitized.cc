// For builds whose sanitizer has replaced malloc: it says what is allocated. Memory mapped by the
// program is not counted.
#include <atomic>
#include <cstddef>

#include "tests/torture/counted_memory.h"

// Of <sanitizer/allocator_interface.h>, which g++ does not bring.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): the sanitizers'
size_t __sanitizer_get_allocated_size(const volatile void*);
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                              void (*)(const volatile void*));
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
}

namespace {

std::atomic<int64_t> held{0}, peak{0};

void OnAllocation(const volatile void* /*memory*/, size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  const int64_t now = held.fetch_add(size, std::memory_order_relaxed) + size;
  int64_t before = peak.load(std::memory_order_relaxed);
  while (before < now && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

void OnRelease(const volatile void* memory) {
  if (memory == nullptr) return;
  held.fetch_sub(static_cast<int64_t>(__sanitizer_get_allocated_size(memory)),
                 std::memory_order_relaxed);
}

[[maybe_unused]] const int installed =
    __sanitizer_install_malloc_and_free_hooks(OnAllocation, OnRelease);

}  // namespace

namespace stoker::testing {

int64_t HeldBytes() { return held.load(std::memory_order_relaxed); }
int64_t PeakBytes() { return peak.load(std::memory_order_relaxed); }
void ResetPeak() { peak.store(held.load(std::memory_order_relaxed), std::memory_order_relaxed); }

}  // namespace stoker::testing
