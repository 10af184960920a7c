// CacheChoice: where a loader keeps the photographs that it has decoded, and how many bytes of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result/result.h"

namespace stoker {

struct CacheChoice {
  uint64_t bytes = 0;    // limit of all processes that share the cache; 0 means there is no cache
  std::string folder{};  // empty: in memory

  // Parses "ram:SIZE" or "dir:FOLDER:SIZE"; an empty text means no cache. A size is a number and a
  // unit (core/result/byte_size.h), at least 1 MiB. InvalidArgument says what is wrong with the
  // text.
  static Result<CacheChoice> Parse(std::string_view text);
  std::string ToString() const;  // in the form that Parse reads

  explicit operator bool() const { return bytes != 0; }
  friend bool operator==(const CacheChoice&, const CacheChoice&) = default;
};

}  // namespace stoker
