// ArrayDecoder: decodes an image, or a part of it, into an array whose size depends on the image.
// (transforms/plan/ makes rows of one size from images of any size.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/array/array_request.h"
#include "transforms/array/array_sink.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/resize/resampler.h"

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
  // resized beyond max_pixels or kMaxSidePixels; Unimplemented for an image with alpha, or of 16
  // bits, that is to be resized unchanged, for an unchanged WebP with alpha, and for an image of 16
  // bits with any other request, unless the limits accept it.
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
  Result<ArrayShape> PrepareSamples(const ImageInfo& info);
  bool gray() const { return request_.mode == ArrayMode::kGray; }
  Result<Rect> StartResampling(void* array);
  Status DecodeSamples(uint8_t* array);
  size_t Pixels() const;  // of the array

  const DecodeLimits limits_;
  ImageDecoder decoder_;
  ArraySink sink_;
  Resampler resampler_;
  GrowingBuffer between_;  // RGB of a resampled gray array, or samples that are turned afterwards

  // Properties of the open image.
  std::optional<ImageView> pixels_;  // already decoded
  ArrayRequest request_;
  Resampling task_;
  bool resampled_ = false;   // by the resampler; otherwise the sink writes the array's pixels
  size_t sample_bytes_ = 0;  // bytes of a pixel that is decoded unchanged; 0 means it is 8-bit gray
                             // or RGB
  uint8_t* gray_ = nullptr;  // the array that is computed from between_
  bool started_ = false;     // the decoder was started and must be finished
  Status status_;            // of Start
};

}  // namespace stoker
