// Processor: from encoded images to the rows that a vision model takes, as Hugging Face's image
// processors make them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/dtype.h"
#include "core/batch/image.h"
#include "core/result/result.h"
#include "engine/arrays/decode_image.h"
#include "engine/arrays/encoded_input.h"
#include "transforms/array/array_request.h"
#include "transforms/decode/decoding.h"
#include "transforms/processor/recipe.h"

namespace stoker {

class Runtime;

struct ProcessorOptions {
  ProcessorRecipe recipe;
  // kF32, kF16 or kBF16: normalised. kU8: not normalised, for a device to do (normalisation()).
  DType dtype = DType::kF32;
  bool exif_orientation = true;  // turn images as their EXIF tag says
  DecodeLimits limits{};
  // Limit on the working memory of all calls together, in bytes, without the arrays. 0 means a
  // quarter of the available memory, at most 4 GiB, divided by the ranks.
  uint64_t memory_budget = 0;
};

// The rows of a call's images, in their order.
struct ProcessedImages {
  // {rows, …}: of patches that follow each other, {rows, values}; of tiles, {tiles, 3, height,
  // width}; of rows that are padded, {images, rows, …}; of one canvas, {images, 3, height, width}.
  DecodedArray array;
  std::vector<ImagePlan> images;
};

// Thread-safe: calls do not wait for each other. Must outlive its calls; arrays may outlive it.
// Works in a forked child. The same bytes for any number of threads.
//
// Memory: the array, and for each image in progress its canvas (3 bytes a pixel), the decoder's
// working memory, and the image's own pixels if it has two canvases or alpha on white.
class Processor {
 public:
  // InvalidArgument: a type that is not possible, or limits below 1. ResourceExhausted: each image
  // has more than kMostRowBytes.
  static Result<std::unique_ptr<Processor>> Create(ProcessorOptions options);
  ~Processor();
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  const ProcessorOptions& options() const;
  const ProcessorRecipe& recipe() const { return options().recipe; }
  Normalisation normalisation() const;

  // Plans an image of this size, as viewed. Reads no pixels. Errors: those of PlanImage.
  Result<ImagePlan> Plan(ImageSize image) const;

  // The shape of the array of images with these plans, at least one. InvalidArgument if rows differ
  // in size; ResourceExhausted if its bytes do not fit an address space.
  Result<ArrayShape> ShapeOf(std::span<const ImagePlan> images) const;

  // Plans images: reads their headers, on the workers of `runtime`, if rows depend on them;
  // otherwise the plans are those of no particular image. Errors: as ProcessAll.
  Result<std::vector<ImagePlan>> PlanAll(std::span<const EncodedInput> inputs, Runtime& runtime,
                                         const Interrupt& interrupt = {}) const;

  // Processes an image on the calling thread. `into`: memory for the array, at least as long; none
  // means new memory. After an error its content is unspecified. Concurrent calls must not write
  // the same bytes.
  //
  // Errors: those of DecodeImage, with the file if the image is in one; those of Plan;
  // InvalidArgument for memory that is too short; ResourceExhausted if the array is larger than the
  // available memory.
  Result<ProcessedImages> Process(const EncodedInput& input,
                                  std::optional<std::span<uint8_t>> into = {}) const;

  // Processes images on the workers of `runtime`, and waits for them. Errors: as above, of the
  // first image that fails, as "images[3]: …" if it is not in a file; those of ShapeOf and of the
  // Runtime; Cancelled by `interrupt`. Images whose number of rows depends on their size are read
  // twice, before and after the array is allocated.
  Result<ProcessedImages> ProcessAll(std::span<const EncodedInput> inputs, Runtime& runtime,
                                     const Interrupt& interrupt = {},
                                     std::optional<std::span<uint8_t>> into = {}) const;

 private:
  class State;
  explicit Processor(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace stoker
