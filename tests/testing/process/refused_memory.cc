#include "tests/testing/process/refused_memory.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<uint64_t> refuse_each{0};  // 0: none
std::atomic<uint64_t> smallest_refused{0};
std::atomic<uint64_t> asked{0}, refused_so_far{0};

bool Refuses(size_t bytes, int flags) {
  const uint64_t each = refuse_each;
  if (each == 0 || bytes < smallest_refused || (flags & MAP_ANONYMOUS) == 0) return false;
  if (++asked % each != 0) return false;
  ++refused_so_far;
  return true;
}

}  // namespace

extern "C" void* mmap(void* at, size_t bytes, int protection, int flags, int descriptor,
                      off_t offset) {
  using Function = void*(void*, size_t, int, int, int, off_t);
  static Function* const next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "mmap"));
  if (Refuses(bytes, flags)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return next(at, bytes, protection, flags, descriptor, offset);
}

namespace stoker::testing {

RefusedMemory::RefusedMemory(uint64_t each, uint64_t smallest) {
  refused_so_far = 0;
  smallest_refused = smallest;
  refuse_each = each;
}

RefusedMemory::~RefusedMemory() { refuse_each = 0; }

uint64_t RefusedMemory::refused() const { return refused_so_far; }

}  // namespace stoker::testing
