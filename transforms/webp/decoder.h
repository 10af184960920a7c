// WebpDecoder: decodes a region of a WebP.
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

// Decodes lossy and lossless images with libwebp, to kInterleaved RGB; Decode drops alpha, and does
// not even decode it if it has its own chunk. Pixels are those of a full decode, for any region.
// Not thread-safe.
class WebpDecoder {
 public:
  // If there is a `budget`, all memory that depends on the image is charged to it while Decode
  // runs: libwebp's allocations (webp/library_bytes.h) and the region's pixels. It must outlive the
  // decoder.
  explicit WebpDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr);
  ~WebpDecoder();
  WebpDecoder(WebpDecoder&&) noexcept;
  WebpDecoder& operator=(WebpDecoder&&) noexcept;

  // Reads the chunks' names and sizes. Errors have an offset: DataLoss for damage, and for a file
  // that ends before its image does; Unimplemented for animations
  // whose first frame does not fill the canvas;
  // ResourceExhausted beyond a limit. `bytes` must stay valid until Decode returns.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes);

  // Decodes `region`, which must not be empty and lie inside the image, into `sink`. Call once
  // after each Open. DataLoss if libwebp finds damage in the rows down to the region's last. (WebP
  // has no checksum: many changed bits just give other pixels.) ResourceExhausted beyond the
  // budget. Errors of the sink are passed on.
  Status Decode(const Rect& region, RowSink& sink);

  // Does the same, but keeps alpha if ImageInfo says so. Writes rows without gaps to `to`.
  Status DecodeUnchanged(const Rect& region, uint8_t* to);

 private:
  struct State;
  Status DecodeTo(const Rect& region, RowSink* sink, uint8_t* to);
  std::unique_ptr<State> state_;
};

}  // namespace stoker
