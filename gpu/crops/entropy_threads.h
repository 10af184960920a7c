// The number of intervals that a block of the entropy kernel takes. Results do not depend on it.
#pragma once

#include <cstdint>

namespace stoker::decode {

constexpr uint32_t kEntropyThreads = 64;

}  // namespace stoker::decode
