// Twice the library's: one set of Huffman tables then serves twice the intervals, and crops of few
// intervals leave more threads without work.
#pragma once

#include <cstdint>

namespace stoker::decode {

constexpr uint32_t kEntropyThreads = 128;

}  // namespace stoker::decode
