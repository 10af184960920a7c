// JpegDecoder: decodes a region of a JPEG, and as little as possible outside of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/batch/image.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/reduction.h"
#include "transforms/decode/row_sink.h"
#include "transforms/jpeg/indexed_jpeg.h"

namespace stoker {

// Supports baseline, extended, progressive and arithmetic coding; gray, YCbCr, RGB, CMYK and YCCK
// (to RGB as Pillow does). The pixels are those of a full decode by libjpeg-turbo with the accurate
// integer inverse DCT and fancy upsampling, for any region.
//
// Common kinds of photographs are decoded by stoker's own decoder (fast/region_decoder.h). All
// others, and those in which it finds an error, are decoded by libjpeg-turbo, which reports all
// errors. Only the layout, the time and paths() tell which of the two was used.
//
// Holds the state of both decoders, reused from image to image. Not thread-safe.
class JpegDecoder {
 public:
  // kLibjpegOnly is for benchmarks and tests.
  enum class Backend { kFastest, kLibjpegOnly };

  // If there is a `budget`, it is charged for coefficients (see DecodeLimits) while Decode runs,
  // and for what the fast decoder keeps during its lifetime: a few rows, and up to 1 MiB of
  // coefficients of progressive images. It must outlive the decoder.
  explicit JpegDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr,
                       Backend backend = Backend::kFastest);
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  // Reads the header; if a file has no end-of-image marker and ends in zeros, reads all its data.
  // `bytes` must stay valid, with kBufferPadding readable bytes after them, until Decode returns.
  // Errors have an offset: DataLoss for damaged or truncated files and for files that are not
  // JPEGs; Unimplemented for kinds of JPEG that libjpeg-turbo does not support; ResourceExhausted
  // beyond a limit.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes);

  // The open image with its index, which is valid until the next call of any function; nullopt if
  // the fast decoder does not support it, or the index is damaged or not for it. `crop_index`: as
  // for Decode. Both must stay valid.
  std::optional<IndexedJpeg> Indexed(std::span<const uint8_t> crop_index);

  // Decodes `region`, which must not be empty and lie inside the stored image, into `sink`, in the
  // layout kGray, kPlanar or kInterleaved. Call once after each Open. Begin of the sink may be
  // called again, up to twice: when the crop index was wrong, and when the fast decoder has found
  // damage and libjpeg-turbo takes over.
  //
  // DataLoss when libjpeg-turbo finds damage in the bytes that the region needs. (JPEG has no
  // checksum: many changed bits just give other pixels.) Open has refused files without an
  // end-of-image marker, unless their data are complete and followed by zeros, or the limits
  // accept truncated ones; other damage after the region is not detected. ResourceExhausted beyond
  // a limit or the budget. Errors of the sink are passed on.
  //
  // `crop_index`: the index that `stoker index` made for this file (fast/crop_index.h), or any
  // other bytes; empty means none. It changes neither pixels nor errors, except that damage outside
  // the bytes used is not detected.
  //
  // With a `reduction`, at most MaxReduction of the image, `region` and the rows are those of the
  // reduced image, and its pixels are those of a full decode by libjpeg-turbo with scale_num 1 and
  // scale_denom `reduction`.
  Status Decode(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index = {},
                Reduction reduction = 1);

  // The same in pieces, so that two decoders can be interleaved: Start, then Advance or AdvanceBoth
  // while decoding(), then Finish. The arguments of Start must stay valid until then.
  void Start(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index = {},
             Reduction reduction = 1);
  bool decoding() const;
  void Advance();
  // Advances both until one of them reaches the end of a piece. Faster than one after the other,
  // because each spends most of its time waiting for table lookups. Precondition: both are
  // decoding.
  static void AdvanceBoth(JpegDecoder& a, JpegDecoder& b);
  Status Finish();

  // How images were decoded since the decoder was created.
  const DecodePaths& paths() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
