// WholeDecoder: decodes a region of an image of a format that is decoded whole (format.h).
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

// Rows are kGray or kInterleaved RGB of 8 bits: alpha is dropped, and of 16 bits the upper 8 are
// kept. Of several frames or pages the first is decoded. Not thread-safe.
class WholeDecoder {
 public:
  // If there is a `budget`, all memory that depends on the image is charged to it while Decode
  // runs: the region's rows in the image's whole width, and what the library allocates. It must
  // outlive the decoder.
  explicit WholeDecoder(const DecodeLimits& limits = {}, MemoryBudget* budget = nullptr);
  ~WholeDecoder();
  WholeDecoder(WholeDecoder&&) noexcept;
  WholeDecoder& operator=(WholeDecoder&&) noexcept;

  // Whether stoker decodes the format whole, if the machine has its library.
  static bool Decodes(ImageFormat format);

  // Reads the header, by the library. Precondition: Decodes(format). Errors have an offset:
  // DataLoss, Unimplemented (also if the library is not there), ResourceExhausted beyond a limit.
  // `bytes` must stay valid until Decode returns.
  Result<ImageInfo> Open(std::span<const uint8_t> bytes, ImageFormat format);

  // Decodes `region`, which must not be empty and lie inside the image, into `sink`. Call once
  // after each Open. Errors as of Open, and those of the sink.
  Status Decode(const Rect& region, RowSink& sink);

  // Does the same, but keeps all channels, and 16 bits in the machine's byte order. Writes rows
  // without gaps to `to`. ImageInfo describes a pixel.
  Status DecodeUnchanged(const Rect& region, uint8_t* to);

 private:
  struct State;
  Status DecodeTo(const Rect& region, RowSink* sink, uint8_t* to);
  std::unique_ptr<State> state_;
};

}  // namespace stoker
