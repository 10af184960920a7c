// ProcessorRecipe: how an image processor of Hugging Face makes the rows that a vision model takes.
//
// An image is resized once or twice; each result, or a window of it, is a canvas, and a row is a
// patch of a canvas. Read in transformers 5.24.0 (image_processing_backends.py, and
// image_processing_*.py and image_processing_pil_*.py of each model):
//
//   processor          size of the canvas                      a row, and what a batch has
//   CLIP, Bit, ViT,    height × width; or the shorter side,    3 × height × width: the whole canvas
//   Siglip, DINOv3ViT  and then a central crop
//   Qwen2VL            multiples of patch × merge, of          patches by groups of merge × merge,
//                      min…max pixels (SmartSize)              temporal copies, planes; patches of
//                                                              all images follow each other
//   Siglip2            the largest of at most padded_rows      patches, interleaved, zeros up to
//                      patches (NaFlexSize)                    padded_rows
//   LlavaNext,         height × width, and the pinpoint that   3 × tile, the whole image first,
//   LlavaOnevision     keeps most pixels, zeros around it      zeros up to the batch's largest
//   GotOcr2            a grid of tiles of nearly the image's   3 × tile, the whole image last, if
//                      aspect ratio, and one tile              there are several; all images' tiles
//
// Intermediate pixels are uint8, but DINOv3ViT scales and then resizes in float32. Bytes become
// floats by tables (patches.h), after padding a canvas and before padding a batch. A key that is
// missing or null has the default of its class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/spec/interpolation.h"

namespace stoker {

// Processors whose rows have the same shape, and that return the same other arrays.
enum class ProcessorFamily : uint8_t {
  kPlain,
  kQwen,
  kNaFlex,
  kLlavaNext,
  kLlavaOnevision,
  kTiled
};

// How the size of the resized image is chosen.
enum class Sizing : uint8_t {
  kKept,       // the image's own
  kExact,      // `size`
  kShortest,   // the shorter side becomes `shortest`
  kPixels,     // SmartSize
  kPatches,    // NaFlexSize
  kPinpoints,  // `size`, and the best of `pinpoints`
  kTiles,      // a grid of tiles of `size`, and `size`
};

struct ProcessorRecipe {
  ProcessorFamily family = ProcessorFamily::kPlain;
  Sizing sizing = Sizing::kExact;
  ImageSize size{224, 224};
  int shortest = 224;
  int64_t min_pixels = 0, max_pixels = 0;  // of kPixels
  std::vector<ImageSize> pinpoints{};      // canvases, multiples of `size`
  int min_tiles = 1, max_tiles = 12;       // of kTiles
  std::optional<ImageSize> crop{};         // central; zeros where it reaches outside the image
  bool resizes_floats = false;             // rescales before it resizes

  ImageSize patch{};        // 0 × 0 means the whole canvas
  int merge = 1;            // groups of merge × merge patches follow each other
  int temporal = 1;         // copies of each channel of a patch
  int64_t padded_rows = 0;  // of each image; 0 means as many as it has
  bool pads_batch = false;  // all images of a batch have as many rows as the largest

  Interpolation interpolation = Interpolation::kBicubic;
  ResampledAs resampler = ResampledAs::kTorchvision;  // or kPillowExact, whose processors also
                                                      // round and pad differently
  bool onto_white = false;  // transparent pixels (do_convert_rgb); otherwise alpha is dropped
  bool rescales = true, normalizes = true;
  double factor = 1.0 / 255;
  std::array<double, 3> mean{0.5, 0.5, 0.5}, deviation{0.5, 0.5, 0.5};

  bool interleaved() const { return family == ProcessorFamily::kNaFlex; }  // pixels of a patch
  bool flat() const { return interleaved() || family == ProcessorFamily::kQwen; }  // rows, 1-D
  bool pads() const { return padded_rows != 0 || pads_batch; }
};

// `window` of the image, resized to `resized`; pixels outside of it are zero.
struct ResizedWindow {
  ImageSize resized;
  Rect window;
  friend bool operator==(const ResizedWindow&, const ResizedWindow&) = default;
};

// The canvases and rows that a processor makes of an image.
struct ImagePlan {
  ImageSize image;  // as viewed
  std::array<ResizedWindow, 2> canvases{};
  int count = 1;     // of the canvases, in the order of their rows
  ImageSize patch;   // of the canvases
  int64_t rows = 0;  // of patches, without padding

  std::span<const ResizedWindow> all() const {
    return std::span(canvases).first(static_cast<size_t>(count));
  }
  ImageSize Grid(const ResizedWindow& canvas) const {  // patches
    return {canvas.window.width / patch.width, canvas.window.height / patch.height};
  }
  friend bool operator==(const ImagePlan&, const ImagePlan&) = default;
};

// Limit on the rows of one image, as float32 and with padding, in bytes.
inline constexpr double kMostRowBytes = 1ULL << 32;

// Computes sizes from an image's size as viewed; reads no pixels. InvalidArgument: the image's
// aspect ratio, or a canvas that patches do not divide or that is larger than images may be.
// ResourceExhausted: the rows take more than kMostRowBytes.
Result<ImagePlan> PlanImage(const ProcessorRecipe& recipe, ImageSize image);

// The normalisation, (value − mean) / deviation of values 0…255: a uint8 row that a device
// normalises so equals the float32 row of kTorchvision to the bit, if that is normalised. The mean
// is 0 and the deviation 1 where there is none.
struct Normalisation {
  std::array<float, 3> mean, deviation;
};
Normalisation NormalisationOf(const ProcessorRecipe& recipe);

// ResourceExhausted: the plan's rows take more than kMostRowBytes.
Status CheckRowBytes(const ProcessorRecipe& recipe, const ImagePlan& plan);

// The patch and the rows of all images, with padding, if they do not depend on the image.
std::optional<ImagePlan> FixedPlan(const ProcessorRecipe& recipe);

// An upper bound of the rows of an image. Precondition: there is a FixedPlan, or a patch.
int64_t MostRowsOf(const ProcessorRecipe& recipe);

// The values of a row that is a patch of this size.
size_t RowValues(const ProcessorRecipe& recipe, ImageSize patch);

// The recipe as names and values, first its family; recipes that make different rows differ. Long
// lists are hashes. TextOf has them in one line: "qwen, size 3136 to 1003520 pixels, …".
std::vector<std::pair<std::string, std::string>> PartsOf(const ProcessorRecipe& recipe);
std::string TextOf(const ProcessorRecipe& recipe);

}  // namespace stoker
