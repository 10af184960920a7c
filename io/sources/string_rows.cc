#include "io/sources/string_rows.h"

#include <algorithm>

namespace stoker {

namespace {

constexpr size_t kFirstChunk = 4096;
constexpr size_t kLargestChunk = 1 << 20;

}  // namespace

void StringRows::Add(std::string_view string) {
  if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < string.size()) {
    const size_t next =
        chunks_.empty() ? kFirstChunk : std::min(2 * chunks_.back().capacity(), kLargestChunk);
    chunks_.emplace_back().reserve(std::max(next, string.size()));
  }
  std::string& chunk = chunks_.back();
  const size_t begin = chunk.size();
  chunk += string;
  rows_.push_back(std::string_view(chunk).substr(begin));
}

uint64_t StringRows::memory_bytes() const {
  uint64_t bytes =
      rows_.capacity() * sizeof(std::string_view) + chunks_.capacity() * sizeof(std::string);
  for (const std::string& chunk : chunks_) bytes += chunk.capacity();
  return bytes;
}

}  // namespace stoker
