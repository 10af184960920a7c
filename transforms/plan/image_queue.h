// ImageQueue: supplies Plan::ApplyAll with encoded samples, one after another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/memory/buffer.h"
#include "core/numbers/random.h"
#include "core/result/result.h"

namespace stoker {

class CropRegion;

// A sample whose bytes have been read.
struct EncodedImage {
  uint32_t tag = 0;                       // an identifier chosen by the queue
  std::span<const uint8_t> bytes{};       // with kBufferPadding readable bytes after them
  DrawKey key{};                          // the key of its random transforms
  void* row = nullptr;                    // row_bytes() of any alignment: row_shape()
  std::span<const uint8_t> crop_index{};  // see JpegDecoder::Decode; may be empty
  void* work = nullptr;                   // work_bytes(), if the plan defers operations to a device
  int32_t* size = nullptr;  // is set to the image's height and width in its row; may be null
  // The rows of the plan's other views. Read before Next or Done is called again.
  std::span<void* const> other_rows{};
  // If the plan decodes on a device: where the crop goes that the device decodes instead of the
  // row's pixels (null means nowhere, so the row is written), and what is set to its place there,
  // or to decode::kNoCrop if the row was written (null means it always is).
  CropRegion* crops = nullptr;
  uint64_t* crop_at = nullptr;
};

// Hands samples to ApplyAll and takes them back. All memory that a sample refers to must stay valid
// until Done.
class ImageQueue {
 public:
  virtual ~ImageQueue() = default;

  // Returns none if no sample is ready now; Next may be called again. `crop_index`: memory that the
  // sample's crop index may be read into, and that is the sample's until Done. It counts in the
  // workspace's budget.
  virtual std::optional<EncodedImage> Next(GrowingBuffer& crop_index) = 0;

  // The row is written; on failure its content is unspecified, and the error has an offset if
  // known, but no file.
  virtual void Done(uint32_t tag, Status status) = 0;
};

}  // namespace stoker
