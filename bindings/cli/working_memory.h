// The memory limit of subcommands that decode without a loader.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transforms/decode/image_info.h"

namespace stoker {

// Returns the limit of one thread: file, rows and coefficients together; 4 GiB by default.
inline uint64_t WorkingMemory(const DecodeLimits& limits) {
  constexpr int64_t kBytesPerPixel = 16;
  return static_cast<uint64_t>(kBytesPerPixel *
                               std::max(limits.max_pixels, DecodeLimits().max_pixels));
}

}  // namespace stoker
