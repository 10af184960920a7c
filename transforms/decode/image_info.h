// What an image file says before its pixels, and how much it may ask for: the same for all formats.
#pragma once

#include <cstdint>
#include <string>

#include "core/image.h"
#include "core/result.h"
#include "transforms/decode/format.h"
#include "transforms/decode/orientation.h"

namespace stoker {

// What hostile bytes may ask for.
struct DecodeLimits {
  int64_t max_pixels = int64_t{1} << 28;  // width × height; 268 million
  int max_scans = 200;                    // of a JPEG

  // How many a JPEG of that size may have. Each scan walks the whole image, though it may be a few
  // bytes long: an image of max_pixels may have 16, smaller ones more, those of less than a twelfth
  // max_scans. (A common progressive file has 10.)
  int ScansOf(ImageSize size) const;

  // A JPEG of several scans (all progressive ones) needs its whole image in memory while it is
  // decoded, as coefficients: 2 bytes a sample, 2 to 8 a pixel. At most 4 for each of max_pixels.
  // (The few rows of blocks that every image needs are not counted.)
  int64_t CoefficientBytes() const;
};

struct ImageInfo {
  ImageSize size;  // as stored
  Orientation orientation = Orientation::kNormal;
  int components = 3;        // 1: gray, 3: colour, 4: CMYK or YCCK; alpha is not counted
  int chroma_columns = 1;    // pixels that share a chroma sample: 2 × 2 is called 4:2:0
  int chroma_rows = 1;       // (of JPEGs and lossy WebPs; 1 × 1 of all else)
  bool progressive = false;  // or interlaced: the top rows are not complete before the end
  ImageFormat format = ImageFormat::kJpeg;
};

std::string SizeText(ImageSize size);  // "640 × 480"

// ResourceExhausted for more pixels than the limit, or a side of more than kMostSidePixels. `size`
// has been read at `offset`.
Status CheckSize(ImageSize size, const DecodeLimits& limits, uint64_t offset);

// What says that `needed` bytes of working memory are missing to decode: "a PNG" of that size.
Error NoRoomToDecode(const std::string& what, ImageSize size, uint64_t needed);
// Where it failed for memory: and so many bytes more would have been wanted.
Status AndMore(Status failed, uint64_t bytes);

// Whether `region` is not empty and lies in an image of that size.
bool Inside(const Rect& region, ImageSize size);

}  // namespace stoker
