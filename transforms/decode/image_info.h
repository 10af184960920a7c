// ImageInfo: an image's header, and DecodeLimits: how much memory and time an image may take.
#pragma once

#include <cstdint>
#include <string>

#include "core/image.h"
#include "core/result.h"
#include "transforms/decode/format.h"
#include "transforms/decode/orientation.h"

namespace stoker {

// Limits for hostile files.
struct DecodeLimits {
  int64_t max_pixels = int64_t{1} << 28;  // width × height; 268 million
  int max_scans = 200;                    // of a JPEG

  // The number of scans that a JPEG of that size may have. Each scan covers the whole image, even
  // if it takes only a few bytes: an image of max_pixels may have 16, smaller ones more, and those
  // below a twelfth of it max_scans. (A common progressive file has 10.)
  int ScansOf(ImageSize size) const;

  // The coefficients of a JPEG with several scans (all progressive ones) are kept in memory for the
  // whole image while it is decoded: 2 bytes per sample, 2 to 8 per pixel. The limit is 4 bytes for
  // each of max_pixels. (The few rows of blocks that every image needs are not counted.)
  int64_t CoefficientBytes() const;
};

struct ImageInfo {
  ImageSize size;  // as stored
  Orientation orientation = Orientation::kNormal;
  int components = 3;        // 1: gray, 3: colour, 4: CMYK or YCCK; alpha is not counted
  int chroma_columns = 1;    // pixels that share a chroma sample: 2 × 2 is called 4:2:0
  int chroma_rows = 1;       // (for JPEGs and lossy WebPs; 1 × 1 for all others)
  bool progressive = false;  // or interlaced: the top rows are complete only at the end
  ImageFormat format = ImageFormat::kJpeg;
};

std::string SizeText(ImageSize size);  // "640 × 480"

// ResourceExhausted for more pixels than the limit, or a side above kMostSidePixels. `size` was
// read at `offset`.
Status CheckSize(ImageSize size, const DecodeLimits& limits, uint64_t offset);

// The error that `needed` bytes of working memory are missing to decode `what` ("a PNG") of that
// size.
Error NoRoomToDecode(const std::string& what, ImageSize size, uint64_t needed);
// If `failed` is a lack of memory, adds `bytes` to the bytes it wanted.
Status AndMore(Status failed, uint64_t bytes);

// Whether `region` is not empty and lies in an image of that size.
bool Inside(const Rect& region, ImageSize size);

}  // namespace stoker
