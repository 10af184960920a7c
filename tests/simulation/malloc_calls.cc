// malloc and its relatives: those of simulated code take memory from the Arena, all others from
// glibc, whose own functions have the names __libc_*.
#include <malloc.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/simulation/arena.h"
#include "tests/simulation/scheduler.h"

// NOLINTBEGIN(readability-identifier-naming): glibc's names.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);
}
// NOLINTEND(readability-identifier-naming)

using ::stoker::testing::Arena;
using ::stoker::testing::Scheduler;

namespace {

void* Allocate(size_t bytes, size_t alignment = 16) {
  void* const block = Arena::Allocate(bytes, alignment);
  if (Scheduler* const running = Scheduler::Running()) running->NoteBlock(Arena::use().allocated);
  return block;
}

}  // namespace

extern "C" {

void* malloc(size_t bytes) { return Arena::on() ? Allocate(bytes) : __libc_malloc(bytes); }

void* calloc(size_t count, size_t bytes) {
  if (!Arena::on()) return __libc_calloc(count, bytes);
  if (bytes != 0 && count > SIZE_MAX / bytes) return nullptr;
  void* const block = Allocate(count * bytes);
  if (block != nullptr) std::memset(block, 0, count * bytes);
  return block;
}

void free(void* block) {
  if (!Arena::Has(block)) return __libc_free(block);
  if (!Arena::Free(block)) Scheduler::FailMemory("freed memory is freed again", block);
}

void* realloc(void* block, size_t bytes) {
  if (!Arena::Has(block) && (block != nullptr || !Arena::on())) return __libc_realloc(block, bytes);
  void* const grown = Allocate(bytes);
  if (block == nullptr || grown == nullptr) return grown;
  const size_t before = Arena::BytesOf(block);
  std::memcpy(grown, block, before < bytes ? before : bytes);
  free(block);
  return grown;
}

void* memalign(size_t alignment, size_t bytes) {
  return Arena::on() ? Allocate(bytes, alignment) : __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block != nullptr ? 0 : ENOMEM;
}

}  // extern "C"
