// Half the library's: blocks end earlier.
#pragma once

#include <cstdint>

namespace stoker::decode {

constexpr uint32_t kUnpackWarps = 4;

}  // namespace stoker::decode
