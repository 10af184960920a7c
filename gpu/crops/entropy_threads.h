// How many intervals a block of the entropy kernel takes. No result depends on it.
#pragma once

#include <cstdint>

namespace stoker::decode {

constexpr uint32_t kEntropyThreads = 64;

}  // namespace stoker::decode
