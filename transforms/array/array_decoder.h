// ArrayDecoder: decodes an image, or a part of it, into an array whose size depends on the image.
// (transforms/plan/ makes rows of one size from images of any size.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/batch/image.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/array/array_request.h"
#include "transforms/array/array_sink.h"
#include "transforms/decode/gray_rows.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/resize/resampler.h"
#include "transforms/wide/wide_decoder.h"

namespace stoker {

// InvalidArgument for a type, a layout or a resize that is not possible, and for limits below 1.
// (Limits that are larger than any image have no effect.)
Status CheckRequest(const ArrayRequest& request, const DecodeLimits& limits);

// Decodes whole images and regions into the array without a copy in between, if their orientation
// is normal; otherwise it keeps a window of rows, or all rows to transpose them. Reused from image
// to image. Not thread-safe.
class ArrayDecoder {
 public:
  // All memory except the array's is charged to `budget`, which must outlive the decoder.
  ArrayDecoder(const DecodeLimits& limits, MemoryBudget& budget);

  // Reads the header; says what Start will write. `bytes` must stay valid, with kBufferPadding
  // readable bytes after them, until Finish. Errors: those of ImageDecoder::Open; InvalidArgument
  // for a region that is empty or not inside the image; ResourceExhausted if the image would be
  // resized beyond max_pixels or kMaxSidePixels; Unimplemented for an image of 16 bits that is to
  // have 8, unless the limits accept it.
  Result<ArrayShape> Open(std::span<const uint8_t> bytes, const ArrayRequest& request);

  // Does the same for a decoded image, 1 to kMaxSidePixels on each side, whose pixels must stay
  // valid until Finish. Reads no byte outside its rows.
  Result<ArrayShape> Open(const ImageView& image, const ArrayRequest& request);

  // Writes the bytes of the shape to `array`, and no others. Must be called once after each
  // successful Open. Errors: those of ImageDecoder::Decode; the array's content is then
  // unspecified.
  Status Decode(void* array);

  // Decodes in pieces, like ImageDecoder.
  void Start(void* array);
  bool decoding() const { return decoder_.decoding(); }
  void Advance() { decoder_.Advance(); }
  static void AdvanceBoth(ArrayDecoder& a, ArrayDecoder& b) {
    ImageDecoder::AdvanceBoth(a.decoder_, b.decoder_);
  }
  Status Finish();

 private:
  Result<ArrayShape> Prepare(const ImageInfo& info, const ArrayRequest& request);
  ArrayShape ShapeOf(ImageSize size) const;
  PixelOutput OutputTo(void* array) const;
  Status DecodeWide(void* array);

  const DecodeLimits limits_;
  ImageDecoder decoder_;
  ArraySink sink_;
  Resampler resampler_;
  GrayRows gray_rows_;  // of decoded pixels
  WideDecoder wide_;

  // Properties of the open image.
  std::optional<ImageView> pixels_;  // already decoded
  ArrayRequest request_;
  ImageInfo info_;
  std::optional<WideFormat> format_;
  Resampling task_;
  bool resampled_ = false;  // otherwise pixels are written to the array as they are decoded
  bool started_ = false;    // the decoder was started and must be finished
  Status status_;           // of Start
};

}  // namespace stoker
