// A kernel that translate.py has translated from PTX, and what its threads need to run.
//
// Lane is implemented twice, as CMake chooses: fiber_lanes.cc runs the threads of a grid on one
// thread of the CPU, thread_lanes.cc gives each thread of a block one of the CPU's.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing::ptx {

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

// A load or a store: its line in the PTX, and how many bytes it accesses.
struct Access {
  uint32_t line, bytes;
};

struct TranslatedKernel;

// One thread of a running kernel. Its functions may be called by that thread only.
struct Lane {
  const TranslatedKernel& kernel;
  void* const* parameters;  // the address of each
  Extent thread, block;     // indices; threads has x only
  Extent threads, blocks;   // how many
  uint8_t* shared;          // kernel.shared_bytes

  uint64_t instructions = 0;  // executed so far
  uint64_t stored = 0;        // bytes of global memory

  // Returns the address of an access to shared memory, whose bytes are numbered from 0, and to any
  // other memory. Ends the program if it is not aligned, or outside of shared memory.
  uint64_t Shared(uint64_t at, Access access) const {
    if (at % access.bytes != 0) [[unlikely]]
      Fail(access, at, "is not aligned");
    if (!Contains(at, access.bytes)) [[unlikely]]
      Fail(access, at, "is outside of shared memory");
    return SharedAddress(at);
  }
  uint64_t Memory(uint64_t at, Access access) const {
    if (at % access.bytes != 0) [[unlikely]]
      Fail(access, at, "is not aligned");
    return at;
  }
  uint64_t SharedAddress(uint64_t at) const { return reinterpret_cast<uintptr_t>(shared) + at; }

  // `barrier`: an index in Barriers().
  void SyncBlock(uint32_t barrier) const;
  void SyncWarp(uint32_t barrier) const;
  uint32_t ActiveMask() const;
  uint64_t Clock() const;
  void Sleep(uint32_t nanoseconds) const;

 private:
  bool Contains(uint64_t at, uint32_t bytes) const;
  [[noreturn]] void Fail(Access access, uint64_t at, const char* why) const;
};

struct TranslatedKernel {
  const char* name;   // as mangled by nvcc
  const char* title;  // for reports
  const char* file;   // of the PTX
  void (*run)(Lane&);
  uint32_t shared_bytes;
};

struct Barrier {
  const char* kernel;  // its title
  const char* opcode;
  uint32_t line;       // of the PTX
  const char* source;  // the lines that it was compiled from, innermost first
};

// Those of this program.
std::span<const TranslatedKernel> TranslatedKernels();
std::span<const Barrier> Barriers();

inline bool Lane::Contains(uint64_t at, uint32_t bytes) const {
  return at + bytes <= kernel.shared_bytes && at + bytes > at;
}

}  // namespace stoker::testing::ptx
