// JPEG bytes into pixels: the region asked for, and no more than needed beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/image.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/row_sink.h"
#include "transforms/jpeg/paths.h"

namespace stoker {

// Baseline, extended, progressive, arithmetic; gray, YCbCr, RGB, CMYK and YCCK (to RGB as Pillow
// does). Pixels are those of a full decode by libjpeg-turbo with the accurate integer inverse DCT
// and fancy upsampling, whatever the region.
//
// Photographs of the common kinds are decoded by our own decoder (fast/region_decoder.h). All
// others, and those in which it finds anything amiss, are decoded by libjpeg-turbo, from which all
// errors come: which of the two it was can only be told by the layout, the time, and paths().
//
// Holds the state of both, reused from image to image. One thread at a time.
class JpegDecoder {
 public:
  // kLibjpegOnly is for measuring and for tests.
  enum class Way { kFastest, kLibjpegOnly };

  // Where there is a `budget`, coefficients (see DecodeLimits) are charged to it while Decode runs,
  // and the few rows that our decoder keeps for as long as it lives; it outlives the decoder.
  explicit JpegDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr,
                       Way way = Way::kFastest);
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  // Reads the header; of a file without an end-of-image marker that ends in zeros, goes through all
  // its data. `bytes` must stay, with kBufferPadding readable bytes behind them, until
  // Decode has returned. Errors have an offset: DataLoss for damage, for a file that is truncated
  // and for one that is no JPEG; Unimplemented for kinds of JPEG that libjpeg-turbo lacks;
  // ResourceExhausted past a limit.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes);

  // Decodes `region`, which lies inside the stored image and is not empty, into `sink`, in the
  // layout kGray, kPlanar or kInterleaved. Once after each Open. The sink may be begun again,
  // and once more: when the index has led to nothing, and when our decoder has found damage and
  // libjpeg-turbo takes over.
  //
  // DataLoss when libjpeg-turbo sees damage in the bytes that the region needs. (JPEG has no
  // checksum: many a changed bit just gives other pixels.) A file without an end-of-image marker
  // was refused by Open, whatever the region, but for one whose data are whole and have zeros
  // behind them; other damage behind the region goes unseen.
  // ResourceExhausted past a limit or the budget. Errors of the sink are passed on.
  //
  // `crop_index`: what `stoker index` made of this file (fast/crop_index.h), or anything; empty:
  // there is none. The pixels are the same without it, and so are errors, but that damage outside
  // the bytes used goes unseen.
  Status Decode(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index = {});

  // The same in pieces, so that two decoders can take turns: Start, Advance or AdvanceBoth for as
  // long as it is decoding(), Finish. What is given to Start has to stay until then.
  void Start(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index = {});
  bool decoding() const;
  void Advance();
  // Faster than one after the other: each waits for its tables most of the time. Until one of them
  // has come to the end of a piece. Precondition: both are decoding.
  static void AdvanceBoth(JpegDecoder& a, JpegDecoder& b);
  Status Finish();

  // How images were decoded since the decoder was made.
  const DecodePaths& paths() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
