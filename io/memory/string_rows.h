// StringRows: the rows of a column of strings, with memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/batch/dtype.h"
#include "io/memory/arrays.h"

namespace stoker {

// Strings are any bytes, in the order in which they were added. Each takes 16 bytes plus its
// length.
class StringRows {
 public:
  void Reserve(size_t strings) { rows_.reserve(strings); }
  void Add(std::string_view string);
  // Adds the strings of another StringRows, and takes over its memory.
  void Append(StringRows other);

  void ShrinkToFit() { rows_.shrink_to_fit(); }  // the strings do not move

  size_t size() const { return rows_.size(); }
  std::span<const std::string_view> rows() const { return rows_; }
  uint64_t memory_bytes() const;  // on the heap

  // Returns a column of these strings, with `dtype` kString or kBytes. It is valid as long as the
  // StringRows live, are not added to, and do not move.
  ArrayColumn Column(std::string name, DType dtype) const {
    return {std::move(name), dtype, {}, rows_.data(), rows_.size()};
  }

 private:
  std::vector<std::string> chunks_;  // of text; their memory does not move
  std::vector<std::string_view> rows_;
};

}  // namespace stoker
