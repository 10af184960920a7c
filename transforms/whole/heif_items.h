// The coded images that make up the primary image of a HEIC or AVIF file (HEIF, ISO/IEC 23008-12):
// what libheif and libavif will decode, and allocate memory for, read before they are called.
//
// A file is boxes (ISO/IEC 14496-12). Its `meta` box lists items: `iinf` has their types, `iloc`
// where their data are, `ipco` and `ipma` their properties, such as the size (`ispe`) and the
// decoder's configuration (`hvcC`, `av1C`), and `iref` which items are the tiles of a grid, or the
// alpha channel of another one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/format.h"

namespace stoker::whole {

struct CodedImage {
  ImageSize size;                  // of its ispe box; both sides at least 1
  std::span<const uint8_t> setup;  // the content of its hvcC or av1C box
  std::span<const uint8_t> data;
};

struct HeifItems {
  ImageSize size;                 // of the primary image, before it is cropped and turned
  std::vector<CodedImage> coded;  // at least one
  uint64_t boxes = 0;             // bytes of all boxes that the libraries parse
  bool several_frames = false;    // there is a sequence of images, too (its moov box)
};

// Takes any bytes; the result refers to them. Errors: DataLoss for damaged and truncated files;
// Unimplemented for files with more or other boxes and items than cameras and encoders write, which
// the libraries could understand in another way than this function does.
Result<HeifItems> ReadHeifItems(ImageFormat format, std::span<const uint8_t> bytes);

}  // namespace stoker::whole
