// A piece of anonymous memory from the system, given back when it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/result.h"

namespace stoker {

// Page-aligned, zeroed, pages touched only when used. Move-only.
class Mapping {
 public:
  Mapping() = default;
  // ResourceExhausted when the system has no room. huge_pages: ask for them; only a hint.
  static Result<Mapping> Map(size_t bytes, bool huge_pages = false);

  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();

  // Pages that are touched from now on come from this NUMA node where it has some left; only a
  // hint.
  void PreferNode(int node) const;
  // A forked child does not get it: else the first write after the fork, by whichever process,
  // moves a page away from under a device that copies from it.
  void KeepFromForks() const;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }  // bytes, a multiple of the page

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace stoker
