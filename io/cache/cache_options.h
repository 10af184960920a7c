// CacheOptions: where ranges of remote objects are kept (io/cache/disk_cache.h).
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

// Local files are not cached.
struct CacheOptions {
  std::string folder{};  // on a local disk; empty means nothing is kept
  uint64_t bytes = 0;    // limit on the disk space it takes; required with a folder
};

}  // namespace stoker
