#include "io/source/path_table.h"

#include "core/hash/hash.h"

namespace stoker {

PathTable::PathTable(std::span<const std::string> paths) {
  size_t bytes = 0;
  for (const std::string& path : paths) bytes += path.size();
  Reserve(paths.size());
  bytes_.reserve(bytes);
  for (const std::string& path : paths) Add(path);
}

void PathTable::ShrinkToFit() {
  ends_.shrink_to_fit();
  bytes_.shrink_to_fit();
}

uint64_t PathTable::Hash() const {
  const std::span<const uint64_t> ends = ends_;
  const auto* at = reinterpret_cast<const uint8_t*>(ends.data());
  return Hash64(bytes_, Hash64(std::span(at, ends.size_bytes())));
}

uint64_t PathTable::memory_bytes() const {
  return ends_.capacity() * sizeof(uint64_t) + bytes_.capacity();
}

}  // namespace stoker
