// Anonymous memory from the system, unmapped on destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/result/result.h"

namespace stoker {

// Page-aligned and zeroed; pages are allocated on first use. Move-only.
class Mapping {
 public:
  Mapping() = default;
  // ResourceExhausted if the system has no memory. huge_pages is a hint.
  static Result<Mapping> Map(size_t bytes, bool huge_pages = false);

  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();

  // Pages touched from now on come from this NUMA node if it has free ones; a hint.
  void PreferNode(int node) const;
  // Excludes the mapping from forked children: otherwise the first write after a fork, in either
  // process, would move a page while a device copies from it.
  void KeepFromForks() const;

  // Leaves the memory mapped for as long as the process runs, and forgets it.
  void Release() {
    data_ = nullptr;
    size_ = 0;
  }

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }  // bytes, a multiple of the page size

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace stoker
