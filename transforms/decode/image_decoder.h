// Image bytes into pixels, whatever the format: told from the bytes, not from a name.
#pragma once

#include <cstdint>
#include <span>

#include "core/image.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "transforms/decode/format.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/row_sink.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/png/decoder.h"
#include "transforms/webp/decoder.h"

namespace stoker {

// JPEG, PNG and WebP; the promises are those of JpegDecoder, PngDecoder and WebpDecoder. JPEGs are
// decoded in pieces, the others at once, in Start. One thread at a time.
class ImageDecoder {
 public:
  // `budget`, where there is one, outlives the decoder.
  explicit ImageDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr);

  // Reads the header. `bytes` must stay, with kBufferPadding readable bytes behind them, until the
  // image is decoded. Errors have an offset: DataLoss for damage, for a file that is truncated, and
  // for one that is no image; Unimplemented for formats and kinds that stoker lacks;
  // ResourceExhausted past a limit.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes);

  // Decodes `region`, which lies inside the stored image and is not empty, into `sink`. Once after
  // each Open. `crop_index` is for JPEGs.
  Status Decode(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index = {});

  // The same in pieces: Start, Advance or AdvanceBoth for as long as it is decoding(), Finish. What
  // is given to Start has to stay until then.
  void Start(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index = {});
  bool decoding() const;
  void Advance();
  // Precondition: both are decoding.
  static void AdvanceBoth(ImageDecoder& a, ImageDecoder& b);
  Status Finish();

  // How JPEGs were decoded since the decoder was made.
  const DecodePaths& paths() const { return jpeg_.paths(); }

 private:
  JpegDecoder jpeg_;
  PngDecoder png_;
  WebpDecoder webp_;
  ImageFormat format_ = ImageFormat::kUnknown;  // of the image that is open
  Status status_;                               // of what was decoded at once
};

}  // namespace stoker
