#include "tests/simulation/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace stoker::testing {

namespace {

// Before each block. Its own grain is never live, so that a small overrun is noticed.
struct Header {
  size_t bytes;
  uint64_t number;  // of allocated blocks
};

constexpr size_t kMostFilled = 512;  // bytes of a block that are overwritten, for speed

Header* HeaderOf(const void* block) {
  return reinterpret_cast<Header*>(reinterpret_cast<uintptr_t>(block) - sizeof(Header));
}

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

void MapAt(uintptr_t address, size_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* const wanted = reinterpret_cast<void*>(address);
  if (mmap(wanted, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != wanted) std::abort();
}

}  // namespace

bool Arena::on_ = false;
bool Arena::is_mapped_ = false;
size_t Arena::used_ = 0;
ArenaUse Arena::use_;

void Arena::Reset() {
  if (!is_mapped_) {
    MapAt(kBegin, kBytes);
    MapAt(kLive, kBytes / kGrain);
    is_mapped_ = true;
  }
  std::memset(LiveOf(0), 0, used_ / kGrain + 1);
  used_ = 0;
  use_ = {};
}

void* Arena::Allocate(size_t bytes, size_t alignment) {
  alignment = std::max(alignment, kGrain);
  const size_t rounded = RoundUp(std::max<size_t>(bytes, 1), kGrain);
  const size_t at = RoundUp(used_ + sizeof(Header), alignment);
  if (rounded > kBytes || at > kBytes - rounded) return nullptr;
  used_ = at + rounded;
  auto* const block = reinterpret_cast<uint8_t*>(kBegin + at);
  *HeaderOf(block) = {bytes, ++use_.allocated};
  std::memset(LiveOf(at), 1, rounded / kGrain);
  std::memset(block, 0xAB, std::min(rounded, kMostFilled));
  ++use_.blocks;
  use_.bytes += bytes;
  return block;
}

bool Arena::Free(void* block) {
  Header* const header = HeaderOf(block);
  if (!Has(header) || !IsLive(block)) return false;
  const size_t rounded = RoundUp(std::max<size_t>(header->bytes, 1), kGrain);
  std::memset(LiveOf(reinterpret_cast<uintptr_t>(block) - kBegin), 0, rounded / kGrain);
  std::memset(block, 0xDF, std::min(rounded, kMostFilled));
  --use_.blocks;
  use_.bytes -= header->bytes;
  return true;
}

uint64_t Arena::FirstLeft() {
  for (size_t at = 0; at < used_; at += kGrain) {
    const auto* const block = reinterpret_cast<const void*>(kBegin + at);
    if (IsLive(block)) return NumberOf(block);
  }
  return 0;
}

uint64_t Arena::NumberOf(const void* block) { return HeaderOf(block)->number; }

size_t Arena::BytesOf(const void* block) { return HeaderOf(block)->bytes; }

}  // namespace stoker::testing
