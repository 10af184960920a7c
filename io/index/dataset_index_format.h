// The format of an index, a file of sections (section_format.h): its version, and the facts about
// each image. The index of a folder has further sections; that of another source has kFacts alone.
#pragma once

#include <array>
#include <cstdint>

namespace stoker::dataset_index {

inline constexpr std::array<char, 8> kMagic = {'S', 'T', 'K', 'I', 'N', 'D', 'E', 'X'};
inline constexpr uint32_t kVersion = 5;  // changes also when other extensions are listed

// The facts that were known about an image when the index was made.
struct Facts {
  uint64_t record_end =
      0;  // end of its crop index in kCropIndexes; it begins at the previous one's end
  uint32_t file_bytes = 0;  // 2^32 − 1: as many or more, or unknown
  uint32_t width = 0;       // as stored; 0 means unknown
  uint32_t height = 0;
  uint8_t orientation = 1;  // the EXIF tag: 1 to 8
  uint8_t format = 0;       // ImageFormat of transforms/decode/format.h; 0 means unknown
  uint16_t unused = 0;
};
static_assert(sizeof(Facts) == 24);

// The limit of kSkipped: a path and some fifty extensions are far below it.
inline constexpr uint64_t kMaxSkipped = 64 << 10;

}  // namespace stoker::dataset_index
