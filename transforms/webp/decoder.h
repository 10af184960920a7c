// WebP bytes into pixels: the region asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/image.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/row_sink.h"

namespace stoker {

// Lossy and lossless ones, by libwebp, to kInterleaved RGB; alpha is left out, and where it is a
// chunk of its own not even decoded. Pixels are those of a full decode, whatever the region. One
// thread at a time.
class WebpDecoder {
 public:
  // Where there is a `budget`, all memory that depends on the image is charged to it while Decode
  // runs: what libwebp allocates (webp/library_bytes.h), and the region's pixels. It outlives the
  // decoder.
  explicit WebpDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr);
  ~WebpDecoder();
  WebpDecoder(WebpDecoder&&) noexcept;
  WebpDecoder& operator=(WebpDecoder&&) noexcept;

  // Reads the chunks' names and sizes. Errors have an offset: DataLoss for damage, and for a file
  // that ends before its image does; Unimplemented for animations; ResourceExhausted past a limit.
  // `bytes` stays until Decode has returned.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes);

  // Decodes `region`, which lies inside the image and is not empty, into `sink`. Once after each
  // Open. DataLoss where libwebp finds damage in the rows down to the region's last. (WebP has no
  // checksum: many a changed bit just gives other pixels.) ResourceExhausted past the budget.
  // Errors of the sink are passed on.
  Status Decode(const Rect& region, RowSink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
