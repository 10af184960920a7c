// PathTable: a list of paths, compact enough for tens of millions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// Paths are any bytes, in the order in which they were added. Each takes 8 bytes plus its length.
class PathTable {
 public:
  PathTable() = default;
  explicit PathTable(std::span<const std::string> paths);

  void Reserve(size_t paths) { ends_.reserve(paths); }
  void Add(std::string_view path) {
    bytes_ += path;
    ends_.push_back(bytes_.size());
  }
  // Frees the memory reserved for further paths.
  void ShrinkToFit();

  size_t size() const { return ends_.size(); }
  // Precondition: index < size().
  std::string_view operator[](size_t index) const {
    const uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(begin, ends_[index] - begin);
  }

  uint64_t Hash() const;          // equal for equal lists
  uint64_t memory_bytes() const;  // on the heap

 private:
  std::vector<uint64_t> ends_;  // by path, in bytes_
  std::string bytes_;           // of all paths, without separators
};

}  // namespace stoker
