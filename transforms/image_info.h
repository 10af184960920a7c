// What an image file says before its pixels, and how much it may ask for: the same for all formats.
#pragma once

#include <cstdint>
#include <string>

#include "engine/core/image.h"
#include "engine/core/result.h"
#include "transforms/format.h"
#include "transforms/orientation.h"

namespace stoker {

// What hostile bytes may ask for.
struct DecodeLimits {
  int64_t max_pixels = int64_t{1} << 28;  // width × height; 268 million

  // The rest is about JPEGs with several scans. So many of them:
  int max_scans = 200;

  // Scans × pixels: each scan walks the whole image, though it may be a few bytes long. Reached
  // before max_scans by images of more than 21 million pixels (25 scans at 170 million: 2 seconds;
  // a common progressive file has 10).
  int64_t max_scan_pixels = int64_t{1} << 32;

  // Files with several scans (all progressive ones) need their whole image in memory while they
  // are decoded, as coefficients: 2 bytes a sample, 2 to 8 a pixel. (The few rows of blocks that
  // every image needs are not counted.)
  int64_t max_coefficient_bytes = int64_t{1} << 30;
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
