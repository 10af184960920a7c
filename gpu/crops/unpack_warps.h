// The number of runs that a block of the unpacking kernel takes. Results do not depend on it.
#pragma once

#include <cstdint>

namespace stoker::decode {

constexpr uint32_t kUnpackWarps = 8;

}  // namespace stoker::decode
