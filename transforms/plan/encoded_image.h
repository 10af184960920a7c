// EncodedImage: the input of a Plan, and the destination of its rows.
#pragma once

#include <cstdint>
#include <span>

#include "core/numbers/random.h"

namespace stoker {

class CropRegion;
struct ObjectRows;

// The addresses to which the rows of one sample are written.
struct OutputRows {
  void* row = nullptr;  // of the first view: row_bytes() of any alignment, as row_shape()
  // The rows of the plan's other views. The span, unlike the rows, is read at once.
  std::span<void* const> other_rows{};
  void* work = nullptr;       // work_bytes(), if the plan defers operations to a device
  int32_t* size = nullptr;    // is set to the image's height and width in its row; may be null
  float* geometry = nullptr;  // is set to the 6 numbers of MapToRow; may be null
  int32_t* original_size =
      nullptr;  // is set to the image's height and width as viewed; may be null
  // The objects of the sample, if PlanOptions::objects is not empty. They are read and written when
  // the plan draws, before any pixel is decoded; or, with a canvas, written with the row. Null is
  // the same as no objects.
  const ObjectRows* objects = nullptr;
  // If the plan decodes on a device: the region for the crop, which the device decodes instead of
  // the row's pixels (null means that the row is written), and the variable for its offset there,
  // or for decode::kNoCrop if the row was written (null means that it always is).
  CropRegion* crops = nullptr;
  uint64_t* crop_at = nullptr;
};

// A piece of a sample, whose bytes have been read. All memory that it refers to must stay valid
// until its rows are finished.
struct EncodedImage {
  uint32_t tag = 0;  // an identifier chosen by the caller
  // Which of PlanOptions::pieces it is; those of further samples of a row are counted on.
  uint32_t piece = 0;
  std::span<const uint8_t> bytes{};  // with kBufferPadding readable bytes after them
  DrawKey key{};                     // the key of its random transforms
  OutputRows to{};
  std::span<const uint8_t> crop_index{};  // see JpegDecoder::Decode; may be empty
};

}  // namespace stoker
