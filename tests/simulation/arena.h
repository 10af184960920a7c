// Arena: the heap of a simulated program. Addresses are the same in each run of a seed, memory that
// was freed is never used again, and each access of instrumented code is checked.
//
// Like malloc, whose calls malloc_calls.cc sends here, it is one for the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::testing {

struct ArenaUse {
  uint64_t blocks = 0, bytes = 0;  // allocated and not freed
  uint64_t allocated = 0;          // blocks since Reset
};

// All of these are for one thread. None of them allocates.
class Arena {
 public:
  // Forgets all blocks. Precondition: nobody uses them any more.
  static void Reset();

  // Null if the arena is full (8 GiB were allocated since Reset).
  static void* Allocate(size_t bytes, size_t alignment = 16);
  // False: there is no such block, or it was freed before.
  [[nodiscard]] static bool Free(void* block);
  static size_t BytesOf(const void* block);
  static uint64_t NumberOf(const void* block);  // it was the so-manieth since Reset, from 1
  // The number of one that is not freed; 0 means there is none.
  static uint64_t FirstLeft();

  static bool Has(const void* address) {
    return reinterpret_cast<uintptr_t>(address) - kBegin < kBytes;
  }
  // Whether the first byte is outside of the arena, or in a block that is not freed.
  static bool IsLive(const void* address) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(address) - kBegin;
    return at >= kBytes || *LiveOf(at) != 0;
  }

  static ArenaUse use() { return use_; }

  // Whether malloc of the calling code is the arena's.
  static bool on() { return on_; }

  // malloc is the system's for its lifetime.
  class Off {
   public:
    Off() : before_(on_) { on_ = false; }
    ~Off() { on_ = before_; }
    Off(const Off&) = delete;
    Off& operator=(const Off&) = delete;

   private:
    const bool before_;
  };

  static void TurnOn() { on_ = true; }
  static void TurnOff() { on_ = false; }

 private:
  static constexpr size_t kBytes = size_t{8} << 30;  // of addresses; memory only where it is used
  static constexpr size_t kGrain = 16;
  // Below these addresses the kernel maps nothing by itself, so they are free in each process.
  static constexpr uintptr_t kBegin = 0x200000000000;
  static constexpr uintptr_t kLive = kBegin + 2 * kBytes;  // a byte for each grain: 1 if it is live

  static uint8_t* LiveOf(uintptr_t at) { return reinterpret_cast<uint8_t*>(kLive + at / kGrain); }

  static bool on_;
  static bool is_mapped_;
  static size_t used_;
  static ArenaUse use_;
};

}  // namespace stoker::testing
