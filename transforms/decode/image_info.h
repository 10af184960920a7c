// ImageInfo: an image's header, and DecodeLimits: how much memory and time an image may take.
#pragma once

#include <cstdint>
#include <string>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/format.h"
#include "transforms/decode/orientation.h"

namespace stoker {

struct ImageInfo {
  ImageSize size;  // as stored
  Orientation orientation = Orientation::kNormal;
  int components = 3;           // 1: gray, 3: colour, 4: CMYK or YCCK; alpha is not counted
  bool several_frames = false;  // or pages, of which one is decoded
  int chroma_columns = 1;       // pixels that share a chroma sample: 2 × 2 is called 4:2:0
  int chroma_rows = 1;          // (for JPEGs and lossy WebPs; 1 × 1 for all others)
  bool progressive = false;     // or interlaced: the top rows are complete only at the end
  ImageFormat format = ImageFormat::kJpeg;
  bool alpha = false;  // there is an alpha channel, or may be one (in a WebP)
  int bits = 8;        // or 16; rows have the upper 8
  int extra = 0;       // other channels (of a TIFF); rows do not have them
  // A colour is transparent, or some are (tRNS of a PNG, in a GIF), which decoders ignore, but for
  // PixelMeaning::kOnWhite.
  bool transparent = false;
};

// What the values of pixels mean.
enum class PixelMeaning : uint8_t {
  kColour,
  // The same, and the transparent colours that tRNS gives a PNG of at most 8 bits are put onto
  // white, as by Pillow. Alpha is dropped.
  kOnWhite,
  // Classes or instances: the values of a PNG's only channel, as stored. Indices of a palette are
  // not looked up, and gray of fewer than 8 bits is not scaled.
  kMask,
  kMask16,  // the same, with values of up to 16 bits; rows are kGray16
};

constexpr bool IsMask(PixelMeaning meaning) { return meaning >= PixelMeaning::kMask; }

std::string SizeText(ImageSize size);  // "640 × 480"

// Returns the DataLoss of a mask or other further image of a sample whose viewed size is not that
// of the image that it must match, which is `image`: "a.jpg, the image of this sample".
Error SizeMismatch(ImageSize size, ImageSize of_image, const std::string& image);

// ResourceExhausted for more pixels than the limit, or a side above kMaxSidePixels. `size` was
// read at `offset`. A pixel of more than 8 bytes counts as several.
Status CheckSize(ImageSize size, const DecodeLimits& limits, uint64_t offset, int pixel_bytes = 8);

// Unimplemented for more channels than those from which Pillow takes colours.
Status CheckChannels(ImageFormat format, int channels);

// Unimplemented for an image of 16 bits, unless the limits accept it. Called by code that reduces
// it to 8 bits.
Status CheckBits(const ImageInfo& info, const DecodeLimits& limits);

// Returns the error that an image is not a mask. `what`: what differs ("has 3 channels"), `offset`:
// where in the file.
Error NoMask(const std::string& what, uint64_t offset);

// Returns the error that decoding `what` ("a PNG") of that size needs `needed` more bytes of
// working memory.
Error NoRoomToDecode(const std::string& what, ImageSize size, uint64_t needed);
// If `failed` is a lack of memory, adds `bytes` to the bytes it wanted.
Status AndMore(Status failed, uint64_t bytes);

// Whether `region` is not empty and lies in an image of that size.
bool Inside(const Rect& region, ImageSize size);

}  // namespace stoker
