#include "tests/simulation/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

// Declared in <sanitizer/common_interface_defs.h>, which clang does not bring. Null without the
// address sanitizer.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): the sanitizers'
[[gnu::weak]] void __sanitizer_start_switch_fiber(void**, const void*, size_t);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void*, const void**, size_t*);
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
}

namespace stoker::testing {

namespace {

constexpr size_t kGuard = 4096;

}  // namespace

void* StackPool::Take() {
  if (!free_.empty()) {
    void* const stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* const mapped = mmap(nullptr, kGuard + kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED || mprotect(mapped, kGuard, PROT_NONE) != 0) std::abort();
  return static_cast<uint8_t*>(mapped) + kGuard;
}

StackPool::~StackPool() {
  for (void* const stack : free_) munmap(static_cast<uint8_t*>(stack) - kGuard, kGuard + kBytes);
}

// makecontext passes ints.
Fiber::Fiber(void* stack, void (*entry)(void*), void* argument)
    : begun_(false),
      entry_(entry),
      argument_(argument),
      stack_(stack),
      stack_bytes_(StackPool::kBytes) {
  if (getcontext(&beginning_) != 0) std::abort();
  beginning_.uc_stack.ss_sp = stack;
  beginning_.uc_stack.ss_size = StackPool::kBytes;
  beginning_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&beginning_, reinterpret_cast<void (*)()>(&Fiber::Begin), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

void Fiber::Begin(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  self->Arrive();
  self->entry_(self->argument_);
  std::abort();
}

// _setjmp and _longjmp leave the signal mask alone, so they are a few instructions. The frames that
// are left are continued later: nothing is jumped over.
void Fiber::Switch(Fiber& from, Fiber& to) {
  to.from_ = &from;
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&from.frames_, to.stack_, to.stack_bytes_);
  }
  if (_setjmp(from.place_) != 0) return from.Arrive();
  if (to.begun_) _longjmp(to.place_, 1);
  to.begun_ = true;
  setcontext(&to.beginning_);
  std::abort();
}

void Fiber::Arrive() {
  if (__sanitizer_finish_switch_fiber == nullptr) return;
  __sanitizer_finish_switch_fiber(frames_, &from_->stack_, &from_->stack_bytes_);
}

}  // namespace stoker::testing
