// How many runs a block of the unpacking kernel takes. No result depends on it.
#pragma once

#include <cstdint>

namespace stoker::decode {

constexpr uint32_t kUnpackWarps = 8;

}  // namespace stoker::decode
