// Copies what a sample has in a field in memory, such as values of its objects.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "io/source/source.h"

namespace stoker::testing {

template <typename T>
std::vector<T> ViewAs(const SampleSource& source, size_t field, uint64_t id) {
  const std::span<const uint8_t> bytes = source.View(field, id);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace stoker::testing
