// Fiber: a stack of its own on the one thread of a simulation, and switches between such stacks.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <vector>

namespace stoker::testing {

// Stacks are 512 KiB with a guard page, and reused.
class StackPool {
 public:
  static constexpr size_t kBytes = size_t{512} << 10;

  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  void* Take();
  void Give(void* stack) { free_.push_back(stack); }

 private:
  std::vector<void*> free_;
};

class Fiber {
 public:
  // The stack that the program runs on.
  Fiber() = default;
  // Runs entry(argument) when it is first switched to; entry must not return. `stack` is of a
  // StackPool, and must outlive the fiber.
  Fiber(void* stack, void (*entry)(void*), void* argument);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Leaves `from`, which is running, and continues `to`. Returns when something switches to `from`.
  // It makes no system call, except when `to` has not begun.
  static void Switch(Fiber& from, Fiber& to);

  bool begun() const { return begun_; }

 private:
  static void Begin(unsigned high, unsigned low);

  void Arrive();  // after a switch to this fiber

  bool begun_ = true;
  jmp_buf place_;
  ucontext_t beginning_{};
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;

  // For the address sanitizer: where the stack is (of the program's own, it is known when the first
  // switch has left it), the fiber that has switched to this one, and what the sanitizer keeps.
  const void* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  Fiber* from_ = nullptr;
  void* frames_ = nullptr;
};

}  // namespace stoker::testing
