// What a plan is applied to, sample after sample.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/random.h"
#include "core/result.h"

namespace stoker {

// A sample whose bytes are there.
struct EncodedImage {
  uint32_t tag = 0;                     // the feed's own name for it
  std::span<const uint8_t> bytes;       // with kBufferPadding readable bytes behind them
  DrawKey key;                          // what its random transforms depend on
  void* row = nullptr;                  // row_bytes() of any alignment: row_shape()
  std::span<const uint8_t> crop_index;  // as JpegDecoder::Decode has it; may be empty
  void* work = nullptr;                 // work_bytes(), where the plan leaves something to a device
};

// Gives ApplyAll samples, and gets them back. All that a sample names stays until then.
class ImageFeed {
 public:
  virtual ~ImageFeed() = default;

  // None: there is none now. It may be asked again.
  virtual std::optional<EncodedImage> Next() = 0;

  // The row is written; or on failure unspecified, and the error has an offset where there is one,
  // no file.
  virtual void Done(uint32_t tag, Status status) = 0;
};

}  // namespace stoker
