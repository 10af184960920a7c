#include "io/memory/string_rows.h"

#include <algorithm>
#include <utility>

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

void StringRows::Append(StringRows other) {
  for (std::string& chunk : other.chunks_) chunks_.push_back(std::move(chunk));
  rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
}

uint64_t StringRows::memory_bytes() const {
  uint64_t bytes =
      rows_.capacity() * sizeof(std::string_view) + chunks_.capacity() * sizeof(std::string);
  for (const std::string& chunk : chunks_) bytes += chunk.capacity();
  return bytes;
}

}  // namespace stoker
