// IdList: a list of sample ids, of 4 bytes each if all are below 2^32, otherwise of 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/hash/hash.h"

namespace stoker {

class IdList {
 public:
  // For ids below `end`.
  explicit IdList(uint64_t end) : wide_(end > uint64_t{1} << 32) {}

  void Reserve(size_t ids) { wide_ ? eight_bytes_.reserve(ids) : four_bytes_.reserve(ids); }
  void Add(uint64_t id) {
    wide_ ? eight_bytes_.push_back(id) : four_bytes_.push_back(static_cast<uint32_t>(id));
  }

  size_t size() const { return wide_ ? eight_bytes_.size() : four_bytes_.size(); }
  // Precondition: index < size().
  uint64_t operator[](size_t index) const {
    return wide_ ? eight_bytes_[index] : four_bytes_[index];
  }

  uint64_t Hash() const {
    return wide_ ? Hash64(BytesOf(eight_bytes_), 8) : Hash64(BytesOf(four_bytes_), 4);
  }
  uint64_t memory_bytes() const {  // on the heap
    return eight_bytes_.capacity() * 8 + four_bytes_.capacity() * 4;
  }

 private:
  template <typename T>
  static std::span<const uint8_t> BytesOf(const std::vector<T>& ids) {
    return {reinterpret_cast<const uint8_t*>(ids.data()), ids.size() * sizeof(T)};
  }

  bool wide_;
  std::vector<uint32_t> four_bytes_;
  std::vector<uint64_t> eight_bytes_;
};

}  // namespace stoker
