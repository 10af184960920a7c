// PackedMaskDecoder: decodes a region of a packed mask (format.h).
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

// The values, their layout and the ImageInfo, except its format and whether it is interlaced, are
// those that PngDecoder gives for the PNG, for any region. Not thread-safe.
class PackedMaskDecoder {
 public:
  // `budget`, if given, is charged for the runs of two rows, at most 16 bytes for each pixel of a
  // row, during the decoder's lifetime, and must outlive it.
  explicit PackedMaskDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr);
  ~PackedMaskDecoder();
  PackedMaskDecoder(PackedMaskDecoder&&) noexcept;
  PackedMaskDecoder& operator=(PackedMaskDecoder&&) noexcept;

  // Reads the header and the list of values. `bytes` must stay valid, with kBufferPadding readable
  // bytes after them, until Decode returns. Errors have an offset: DataLoss, Unimplemented for
  // another version, for 16 bits unless `meaning` is kMask16, and for kColour, ResourceExhausted
  // beyond a limit.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes, PixelMeaning meaning);

  // Decodes `region`, which must not be empty and lie inside the image, into `sink`. Call once
  // after each Open. Reads the bands that the region needs: damage in others is not detected.
  // DataLoss with an offset; ResourceExhausted beyond the budget. Errors of the sink are passed on.
  Status Decode(const Rect& region, RowSink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
