#include "engine/core/mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <string>

namespace stoker {

Result<Mapping> Mapping::Map(size_t bytes, bool huge_pages) {
  constexpr size_t kPage = 4096;
  Mapping mapping;
  mapping.size_ = (bytes + kPage - 1) / kPage * kPage;
  void* memory =
      mmap(nullptr, mapping.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return SystemError(errno, "cannot map " + std::to_string(mapping.size_) + " bytes");
  }
  mapping.data_ = static_cast<uint8_t*>(memory);
  if (huge_pages) (void)madvise(memory, mapping.size_, MADV_HUGEPAGE);
  return mapping;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace stoker
