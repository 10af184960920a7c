// PackedJpegDecoder: decodes a region of a packed JPEG (format.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/batch/image.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/reduction.h"
#include "transforms/decode/row_sink.h"

namespace stoker {

namespace packed {
class PackedFile;
}

// The pixels, their layout and the ImageInfo, except its format and that it is not progressive, are
// those that JpegDecoder gives for the JPEG, for any region. Not thread-safe.
class PackedJpegDecoder {
 public:
  // `budget`, if given, is charged for the samples of a row of MCUs during the decoder's lifetime,
  // and must outlive it.
  explicit PackedJpegDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr);
  ~PackedJpegDecoder();
  PackedJpegDecoder(PackedJpegDecoder&&) noexcept;
  PackedJpegDecoder& operator=(PackedJpegDecoder&&) noexcept;

  // Reads the header and the directory, and verifies their checksum. `bytes`: the whole file, or a
  // range of it that is itself a packed JPEG (format.h); they must stay valid, with kBufferPadding
  // readable bytes after them, until Decode returns. Errors have an offset: DataLoss, Unimplemented
  // for another version of the format, ResourceExhausted beyond a limit.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes);

  // The file of the last Open. Precondition: it succeeded.
  const packed::PackedFile& file() const;

  // Decodes `region`, which must not be empty and lie inside the stored image, into `sink`. Call
  // once after each Open. Reads the rows of MCUs that the region needs, and verifies their
  // checksums; damage in others is not detected. DataLoss with an offset, even if a row is only
  // missing; ResourceExhausted beyond the budget. Errors of the sink are passed on.
  //
  // With a `reduction`, at most MaxReduction of the image, the region is one of the reduced image.
  Status Decode(const Rect& region, RowSink& sink, Reduction reduction = 1);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
