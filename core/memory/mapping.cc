#include "core/memory/mapping.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
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

void Mapping::PreferNode(int node) const {
  constexpr int kBits = 64;
  std::array<uint64_t, 16> nodes{};
  const auto word = static_cast<size_t>(node / kBits);
  if (data_ == nullptr || node < 0 || word >= nodes.size()) return;
  nodes[word] = uint64_t{1} << (node % kBits);
  // The kernel reads one bit fewer than the number says.
  (void)syscall(SYS_mbind, data_, size_, MPOL_PREFERRED, nodes.data(), nodes.size() * kBits + 1, 0);
}

void Mapping::KeepFromForks() const { (void)madvise(data_, size_, MADV_DONTFORK); }

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace stoker
