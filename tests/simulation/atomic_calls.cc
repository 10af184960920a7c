// Functions that compilers call for -fsanitize=thread, instead of the thread sanitizer's library:
// atomic operations are scheduling points, and each access is checked to be of memory that is not
// freed.
//
// The operations are carried out in one order, whatever order of memory they ask for, and they are
// atomic because a simulation has one system thread: instrumented code must not run on several. A
// weak exchange fails now and then although the value is the expected one.
#include <cstddef>
#include <cstdint>

#include "tests/simulation/arena.h"
#include "tests/simulation/scheduler.h"

using ::stoker::testing::Arena;
using ::stoker::testing::Scheduler;

namespace {

void Check(const volatile void* address) {
  const void* const plain = const_cast<const void*>(address);
  if (__builtin_expect(!Arena::IsLive(plain), 0)) {
    Scheduler::FailMemory("freed memory is used", plain);
  }
}

// A scheduling point of the code at `place`, after which the memory must be there.
void Point(const volatile void* address, const void* place) {
  if (Scheduler* const running = Scheduler::Running()) {
    running->ComeTo(place);
    running->Point();
  }
  Check(address);
}

template <typename Value>
int Exchange(volatile Value* address, Value* expected, Value wanted, const void* place) {
  Point(address, place);
  const Value before = *address;
  if (before == *expected) {
    *address = wanted;
    return 1;
  }
  *expected = before;
  return 0;
}

template <typename Value>
int ExchangeWeakly(volatile Value* address, Value* expected, Value wanted, const void* place) {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr || running->Below(64) != 0) {
    return Exchange(address, expected, wanted, place);
  }
  Point(address, place);
  *expected = *address;
  return 0;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the compiler's names.

// All operations on values of one size. (`order` is ignored.)
#define STOKER_ATOMIC_CALLS(bits)                                                               \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* at, int) {           \
    Point(at, __builtin_return_address(0));                                                     \
    return *at;                                                                                 \
  }                                                                                             \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* at, uint##bits##_t value, int) {    \
    Point(at, __builtin_return_address(0));                                                     \
    *at = value;                                                                                \
  }                                                                                             \
  STOKER_ATOMIC_CHANGE(bits, exchange, value)                                                   \
  STOKER_ATOMIC_CHANGE(bits, fetch_add, static_cast<uint##bits##_t>(before + value))            \
  STOKER_ATOMIC_CHANGE(bits, fetch_sub, static_cast<uint##bits##_t>(before - value))            \
  STOKER_ATOMIC_CHANGE(bits, fetch_and, static_cast<uint##bits##_t>(before & value))            \
  STOKER_ATOMIC_CHANGE(bits, fetch_or, static_cast<uint##bits##_t>(before | value))             \
  STOKER_ATOMIC_CHANGE(bits, fetch_xor, static_cast<uint##bits##_t>(before ^ value))            \
  int __tsan_atomic##bits##_compare_exchange_strong(                                            \
      volatile uint##bits##_t* at, uint##bits##_t* expected, uint##bits##_t wanted, int, int) { \
    return Exchange(at, expected, wanted, __builtin_return_address(0));                         \
  }                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_weak(                                              \
      volatile uint##bits##_t* at, uint##bits##_t* expected, uint##bits##_t wanted, int, int) { \
    return ExchangeWeakly(at, expected, wanted, __builtin_return_address(0));                   \
  }                                                                                             \
  uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                    \
      volatile uint##bits##_t* at, uint##bits##_t expected, uint##bits##_t wanted, int, int) {  \
    (void)Exchange(at, &expected, wanted, __builtin_return_address(0));                         \
    return expected;                                                                            \
  }

#define STOKER_ATOMIC_CHANGE(bits, name, changed)                                                \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* at, uint##bits##_t value, \
                                              int) {                                             \
    Point(at, __builtin_return_address(0));                                                      \
    const uint##bits##_t before = *at;                                                           \
    *at = changed;                                                                               \
    return before;                                                                               \
  }

extern "C" {

STOKER_ATOMIC_CALLS(8)
STOKER_ATOMIC_CALLS(16)
STOKER_ATOMIC_CALLS(32)
STOKER_ATOMIC_CALLS(64)

void __tsan_atomic_thread_fence(int) {
  if (Scheduler* const running = Scheduler::Running()) running->Point();
}
void __tsan_atomic_signal_fence(int) {}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

void __tsan_read1(void* at) { Check(at); }
void __tsan_read2(void* at) { Check(at); }
void __tsan_read4(void* at) { Check(at); }
void __tsan_read8(void* at) { Check(at); }
void __tsan_read16(void* at) { Check(at); }
void __tsan_write1(void* at) { Check(at); }
void __tsan_write2(void* at) { Check(at); }
void __tsan_write4(void* at) { Check(at); }
void __tsan_write8(void* at) { Check(at); }
void __tsan_write16(void* at) { Check(at); }
void __tsan_unaligned_read2(void* at) { Check(at); }
void __tsan_unaligned_read4(void* at) { Check(at); }
void __tsan_unaligned_read8(void* at) { Check(at); }
void __tsan_unaligned_read16(void* at) { Check(at); }
void __tsan_unaligned_write2(void* at) { Check(at); }
void __tsan_unaligned_write4(void* at) { Check(at); }
void __tsan_unaligned_write8(void* at) { Check(at); }
void __tsan_unaligned_write16(void* at) { Check(at); }
void __tsan_vptr_read(void** at) { Check(static_cast<void*>(at)); }
void __tsan_vptr_update(void** at, void*) { Check(static_cast<void*>(at)); }
void __tsan_read_range(void* at, size_t) { Check(at); }
void __tsan_write_range(void* at, size_t) { Check(at); }

}  // extern "C"

// NOLINTEND(readability-identifier-naming)
