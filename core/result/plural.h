// Plural: chooses the form of a noun for a number: "1 batch", "2 batches".
#pragma once

#include <cstdint>

namespace stoker {

constexpr const char* Plural(uint64_t count, const char* one, const char* many) {
  return count == 1 ? one : many;
}

}  // namespace stoker
