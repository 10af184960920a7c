// Draws the rows of a batch as one image, a contact sheet, so that people can look at them.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch/box_format.h"
#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

inline constexpr int64_t kMaxSheetRows = 4096;
inline constexpr int64_t kMaxSheetPixels = 100'000'000;
inline constexpr int kSheetGap = 2;  // pixels between two images

// The objects of images that are drawn. Dense, in C order.
struct SheetObjects {
  std::span<const int64_t> offsets;  // those of image i are [offsets[i], offsets[i + 1])
  const float* boxes = nullptr;      // (objects, 4); null means none
  BoxFormat format = BoxFormat::kXyxy;
  const float* points = nullptr;  // (objects, points_each, 3): x, y, visibility; null means none
  int64_t points_each = 0;
  const int64_t* labels = nullptr;  // (objects): choose the colours; null means white
};

// Images of one size, their masks and their objects. Dense, in C order.
struct SheetRows {
  int64_t count = 0;
  ImageSize size;                   // of each image
  const uint8_t* images = nullptr;  // (count, height, width, 3): RGB
  const uint8_t* masks = nullptr;   // (count, height, width): values of classes; null means none
  const uint16_t* masks_of_16_bits = nullptr;  // others; likewise
  SheetObjects objects{};                      // no offsets means none
};

// Returns the size of a sheet. InvalidArgument: no row, more than kMaxSheetRows of them, images
// without pixels, columns outside [1, kMaxSheetRows], or a sheet of more than kMaxSheetPixels or
// with a side of more than kMaxSidePixels.
Result<ImageSize> SizeOfSheet(int64_t count, ImageSize image, int64_t columns);

// Draws the images from left to right and from top to bottom, `columns` to a line, with white
// between them and where the last line has none. Over each image it draws, with half opacity, the
// colour that PASCAL VOC's map has for each value of its mask (of values of 16 bits:
// ColourOfLabel), except of 0, which is the background by convention; then the outline of each box,
// and a dot for each point whose visibility is not 0. What is outside of the image, or not finite,
// is not drawn. Errors: those of SizeOfSheet.
Result<WholeImage> DrawSheet(const SheetRows& rows, int64_t columns);

// Returns the value of a mask that has the colour of a label: the lowest byte, and 255 for 0, which
// would be black.
constexpr uint8_t ColourOfLabel(int64_t label) {
  const auto low = static_cast<uint8_t>(label);
  return low == 0 ? 255 : low;
}

}  // namespace stoker
