// PngDecoder: decodes a region of a PNG.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/batch/image.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/row_sink.h"

namespace stoker {

// Decodes all color types and depths, also interlaced, to kGray or kInterleaved RGB of 8 bits (see
// png/pixels.h), or the values of a mask as they are stored; of an animated PNG the default image.
// Pixels are those of a full decode, for any region. Not thread-safe.
class PngDecoder {
 public:
  // If there is a `budget`, all memory that depends on the image is charged to it: while Decode
  // runs, the region's pixels of an interlaced image; from the first Decode on, three rows and 125
  // KB for decompression. It must outlive the decoder.
  explicit PngDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr);
  ~PngDecoder();
  PngDecoder(PngDecoder&&) noexcept;
  PngDecoder& operator=(PngDecoder&&) noexcept;

  // Reads the chunks and verifies their checksums: a file with a changed bit is refused here,
  // for any region, and so is one that ends in its pixels. Errors have an offset: DataLoss,
  // Unimplemented (an unknown critical chunk), ResourceExhausted beyond a limit. `bytes` must stay
  // valid until Decode returns. For kOnWhite, ImageInfo::transparent says that Decode ignores tRNS,
  // of 16 bits; a damaged one of fewer is DataLoss. For a mask: Unimplemented for several channels
  // or 16 bits; Decode then keeps values as they are stored, and its rows are kGray.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes,
                         PixelMeaning meaning = PixelMeaning::kColour);

  // Decodes `region`, which must not be empty and lie inside the image, into `sink`. Call once
  // after each Open. Rows above are decompressed and dropped, those below are not read: damage
  // there that no checksum shows is not detected. DataLoss with an offset; ResourceExhausted beyond
  // the budget. Errors of the sink are passed on.
  Status Decode(const Rect& region, RowSink& sink);

  // Does the same, but keeps alpha, and 16 bits in the machine's byte order (png/pixels.h). Writes
  // rows without gaps to `to`. ImageInfo describes a pixel.
  Status DecodeUnchanged(const Rect& region, uint8_t* to);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
