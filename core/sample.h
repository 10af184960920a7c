// SampleRef: the location of one sample. source → order → reader.
#pragma once

#include <cstdint>

namespace stoker {

inline constexpr uint64_t kUnknownLength = ~uint64_t{0};
inline constexpr int64_t kNoLabel = -1;  // the label of a sample in a folder without classes

struct SampleRef {
  uint64_t id = 0;                   // in [0, source.size()); stable for an unchanged dataset
  uint32_t file = 0;                 // the source turns it into a path
  uint64_t offset = 0;               // first byte in the file
  uint64_t length = kUnknownLength;  // bytes; unknown: to the end of the file
  int64_t label = kNoLabel;
};

}  // namespace stoker
