// ImageDecoder: decodes images of any supported format, detected from their bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/batch/image.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/format.h"
#include "transforms/decode/gray_rows.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/reduction.h"
#include "transforms/decode/row_sink.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/mask/decoder.h"
#include "transforms/packed/decoder.h"
#include "transforms/png/decoder.h"
#include "transforms/webp/decoder.h"
#include "transforms/whole/decoder.h"

namespace stoker {

// JPEG, PNG, WebP, packed JPEG, PNG and mask, and the formats of transforms/whole/; for
// guarantees see JpegDecoder, PngDecoder, WebpDecoder, PackedJpegDecoder, PackedMaskDecoder and
// WholeDecoder. JPEGs are decoded in pieces, the others completely in Start. Not thread-safe.
class ImageDecoder {
 public:
  // `budget`, if given, must outlive the decoder.
  explicit ImageDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr);

  // Reads the header. `bytes` must stay valid, with kBufferPadding readable bytes after them, until
  // the image is decoded. Errors have an offset: DataLoss for damaged or truncated files and for
  // files that are not images; Unimplemented for formats and variants that stoker does not support;
  // ResourceExhausted beyond a limit. For a mask: Unimplemented for all but a PNG with one channel
  // of at most 8 bits, or a packed one, whose rows are then kGray. The PNG in an ICO is decoded as
  // one, and the offsets of its errors count from its beginning.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes,
                         PixelMeaning meaning = PixelMeaning::kColour);

  // The open image if it is a packed JPEG, otherwise null.
  const packed::PackedFile* packed_file() const;

  // The open image with its crop index if it is a plain JPEG that can be decoded with it; see
  // JpegDecoder.
  std::optional<IndexedJpeg> indexed_jpeg(std::span<const uint8_t> crop_index);

  // Decodes `region`, which must not be empty and lie inside the stored image, into `sink`. Call
  // once after each Open. `crop_index` is for JPEGs. With a `reduction`, at most MaxReduction of
  // the image (1 for other formats than JPEG), the region is one of the reduced image.
  Status Decode(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index = {},
                Reduction reduction = 1);

  // Whether DecodeUnchanged decodes the open image.
  bool keeps_all() const;
  // Decodes `region` to `to` with all of the image's channels and bits, rows without gaps; see
  // PngDecoder, WebpDecoder and WholeDecoder. FailedPrecondition for JPEGs and packed ones, and for
  // masks.
  Status DecodeUnchanged(const Rect& region, uint8_t* to);

  // The same in pieces: Start, then Advance or AdvanceBoth while decoding(), then Finish. The
  // arguments of Start must stay valid until then.
  void Start(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index = {},
             Reduction reduction = 1);
  bool decoding() const;
  void Advance();
  // Precondition: both are decoding.
  static void AdvanceBoth(ImageDecoder& a, ImageDecoder& b);
  Status Finish();

  // How images were decoded since the decoder was created.
  DecodePaths paths() const;

 private:
  // Keeps whether the image that was opened has several frames.
  Result<ImageInfo> Noted(Result<ImageInfo> info);

  JpegDecoder jpeg_;
  PngDecoder png_;
  WebpDecoder webp_;
  WholeDecoder whole_;
  PackedJpegDecoder packed_;
  PackedMaskDecoder mask_;
  GrayRows gray_;  // between the decoders of formats other than JPEG and a sink that wants luma
  uint64_t packed_count_ = 0;                   // of images whose pixels were decoded
  uint64_t several_frames_count_ = 0;           // likewise
  bool several_frames_ = false;                 // in the open image
  ImageFormat format_ = ImageFormat::kUnknown;  // of the open image
  Status status_;                               // of an image that was decoded in Start
};

}  // namespace stoker
