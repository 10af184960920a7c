// ImageProcessor: decodes an image and writes the rows that a processor of Hugging Face makes of
// it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/array/array_sink.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/processor/patches.h"
#include "transforms/processor/recipe.h"
#include "transforms/resize/resampler.h"
#include "transforms/wide/wide_decoder.h"

namespace stoker {

// How an image is mirrored: left and right, top and bottom.
struct ImageFlips {
  bool columns = false, rows = false;
};

// Rows are resampled while they are decoded, to a canvas; WritePatches makes the output from it.
// The whole image is kept only if it has two canvases, or alpha that is put onto white. Reused from
// image to image. Not thread-safe.
class ImageProcessor {
 public:
  // `recipe` and `values` must outlive it, and so must `budget`, to which all memory is charged.
  ImageProcessor(const ProcessorRecipe& recipe, const PatchValues& values,
                 const DecodeLimits& limits, bool exif_orientation, MemoryBudget& budget);

  // Reads the header; returns the image's size as viewed. `flips`: how the image is mirrored
  // first. `bytes` must stay valid, with kBufferPadding readable bytes after them, until Write.
  // Errors: those of ImageDecoder::Open; Unimplemented for an image of 16 bits, unless the limits
  // accept it, and if transparent pixels are to be put onto white, for the transparent colour of a
  // GIF, and of a PNG that has 16 bits or is in an ICO.
  Result<ImageSize> Open(std::span<const uint8_t> bytes, ImageFlips flips = {});

  // Writes plan.rows rows to `rows`. `plan`: PlanImage of the size. Call once after each Open.
  // Errors: those of ImageDecoder::Decode.
  Status Write(const ImagePlan& plan, uint8_t* rows);

  // How images were decoded so far.
  DecodePaths paths() const { return decoder_.paths(); }

 private:
  bool puts_onto_white() const { return recipe_.onto_white && info_.alpha; }
  Status KeepPixels();
  ImageView KeptImage() const;
  Status Draw(const ResizedWindow& canvas, uint8_t* to);
  Status DrawFloats(const ResizedWindow& canvas, uint8_t* to);
  Resampling TaskFor(const ResizedWindow& canvas) const;

  const ProcessorRecipe& recipe_;
  const PatchValues& values_;
  const DecodeLimits limits_;
  const bool exif_orientation_;
  ImageDecoder decoder_;
  ArraySink sink_;
  Resampler resampler_;
  WideDecoder wide_;
  GrowingBuffer canvas_;
  GrowingBuffer pixels_;  // of the whole image as stored: RGB
  ImageInfo info_;        // of the open image
  bool kept_ = false;     // pixels_ are its own
};

}  // namespace stoker
