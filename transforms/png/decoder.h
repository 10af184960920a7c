// PNG bytes into pixels: the region asked for.
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

// All colour types, depths and interlaced ones, by libspng, to kGray or kInterleaved RGB of 8 bits
// (png/pixels.h says how); of an animated one the image that others see. Pixels are those of a full
// decode, whatever the region. One thread at a time.
class PngDecoder {
 public:
  // Where there is a `budget`, all memory that depends on the image is charged to it: what libspng
  // allocates, and of an interlaced image the region's pixels, while Decode runs; two rows for as
  // long as the decoder lives. It outlives the decoder.
  explicit PngDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr);
  ~PngDecoder();
  PngDecoder(PngDecoder&&) noexcept;
  PngDecoder& operator=(PngDecoder&&) noexcept;

  // Reads the chunks, and checks their checksums: a file of which a bit has changed is refused
  // here, whatever the region, and so is one that ends in its pixels. Errors have an offset:
  // DataLoss, Unimplemented (a critical chunk of an unknown kind), ResourceExhausted past a limit.
  // `bytes` stays until Decode has returned.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes);

  // Decodes `region`, which lies inside the image and is not empty, into `sink`. Once after each
  // Open. Rows above are decompressed and dropped, those below are not looked at: damage that no
  // checksum shows goes unseen there. DataLoss with an offset; ResourceExhausted past the budget.
  // Errors of the sink are passed on.
  Status Decode(const Rect& region, RowSink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
