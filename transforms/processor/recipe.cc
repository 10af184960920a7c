#include "transforms/processor/recipe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/hash/hash.h"
#include "core/result/try.h"
#include "transforms/decode/image_info.h"
#include "transforms/plan/draw.h"
#include "transforms/spec/option.h"

namespace stoker {

namespace {

// Sizes are computed as Python does: in doubles, which hold all these integers.

constexpr double kMostAspect = 200;  // of Qwen2VL

// The pixels of a canvas, which is in memory as a whole.
constexpr int64_t kMostCanvasPixels = int64_t{1} << 28;

// The sides of a resized image, which may be larger than the canvas: filters look at every row
// and column.
constexpr int kMostResized = 1 << 26;

Error TooThin(ImageSize image) {
  return {.code = Code::kInvalidArgument,
          .cause = "the image has " + SizeText(image) +
                   " pixels; this processor takes aspect ratios up to 200",
          .advice = "Crop the image, or leave it out"};
}

// smart_resize: the multiples of `factor` next to both sides, scaled if they have too many or too
// few pixels.
Result<ImageSize> SmartSize(const ProcessorRecipe& recipe, ImageSize image) {
  const double height = image.height, width = image.width;
  if (std::max(height, width) / std::min(height, width) > kMostAspect) return TooThin(image);
  const double factor = recipe.patch.width * recipe.merge;
  const auto most = static_cast<double>(recipe.max_pixels);
  const auto least = static_cast<double>(recipe.min_pixels);
  double rows = RoundHalfEven(height / factor) * factor;
  double columns = RoundHalfEven(width / factor) * factor;
  if (rows * columns > most) {
    const double beta = std::sqrt(height * width / most);
    rows = std::max(factor, std::floor(height / beta / factor) * factor);
    columns = std::max(factor, std::floor(width / beta / factor) * factor);
  } else if (rows * columns < least) {
    const double beta = std::sqrt(least / (height * width));
    rows = std::ceil(height * beta / factor) * factor;
    columns = std::ceil(width * beta / factor) * factor;
  }
  const double limit = std::numeric_limits<int>::max();
  return ImageSize{static_cast<int>(std::min(columns, limit)),
                   static_cast<int>(std::min(rows, limit))};
}

// get_image_size_for_max_num_patches: a bisection for the largest scale at which the patches that
// cover the image are not too many.
ImageSize NaFlexSize(const ProcessorRecipe& recipe, ImageSize image) {
  constexpr double kClose = 1e-5;
  const double patch = recipe.patch.width;
  const auto scaled = [&](double scale, int side) {
    return std::max(patch, std::ceil(side * scale / patch) * patch);
  };
  double low = kClose / 10, high = 100;
  while (high - low >= kClose) {
    const double scale = (low + high) / 2;
    const double patches =
        (scaled(scale, image.height) / patch) * (scaled(scale, image.width) / patch);
    (patches <= static_cast<double>(recipe.padded_rows) ? low : high) = scale;
  }
  return {static_cast<int>(scaled(low, image.width)), static_cast<int>(scaled(low, image.height))};
}

// select_best_resolution: keeps most pixels of the image, and among those wastes the fewest.
ImageSize BestPinpoint(const ProcessorRecipe& recipe, ImageSize image) {
  ImageSize best;
  int64_t most_kept = 0, least_wasted = std::numeric_limits<int64_t>::max();
  for (const ImageSize& point : recipe.pinpoints) {
    const double scale = std::min(static_cast<double>(point.width) / image.width,
                                  static_cast<double>(point.height) / image.height);
    const auto width = static_cast<int64_t>(image.width * scale);
    const auto height = static_cast<int64_t>(image.height * scale);
    const int64_t kept = std::min(width * height, int64_t{image.width} * image.height);
    const int64_t wasted = int64_t{point.width} * point.height - kept;
    if (kept > most_kept || (kept == most_kept && wasted < least_wasted)) {
      most_kept = kept;
      least_wasted = wasted;
      best = point;
    }
  }
  return best;
}

// get_patch_output_size, with the image in the middle of the canvas.
ResizedWindow OnPinpoint(ImageSize canvas, ImageSize image) {
  const double across = static_cast<double>(canvas.width) / image.width;
  const double down = static_cast<double>(canvas.height) / image.height;
  ImageSize resized = canvas;
  if (across < down) {
    resized.height = std::min(static_cast<int>(std::ceil(image.height * across)), canvas.height);
  } else {
    resized.width = std::min(static_cast<int>(std::ceil(image.width * down)), canvas.width);
  }
  return {resized,
          {-((canvas.width - resized.width) / 2), -((canvas.height - resized.height) / 2),
           canvas.width, canvas.height}};
}

// get_optimal_tiled_canvas: the grid, in tiles, whose aspect ratio is next to the image's.
ImageSize BestGrid(const ProcessorRecipe& recipe, ImageSize image) {
  const double aspect = static_cast<double>(image.width) / image.height;
  const double area = static_cast<double>(image.width) * image.height;
  const double tile = static_cast<double>(recipe.size.width) * recipe.size.height;
  ImageSize best{1, 1};
  double least = std::numeric_limits<double>::infinity();
  for (int tiles = recipe.min_tiles; tiles <= recipe.max_tiles; ++tiles) {
    for (int width = 1; width <= tiles; ++width) {
      if (tiles % width != 0) continue;
      const ImageSize grid{width, tiles / width};
      const double off = std::abs(aspect - static_cast<double>(grid.width) / grid.height);
      const bool more = off == least && area > 0.5 * tile * tiles;
      if (off < least || more) best = grid;
      least = std::min(least, off);
    }
  }
  return best;
}

// int(size * long / short), as for torchvision's Resize.
ImageSize ShortestSize(int shortest, ImageSize image) {
  const double lower = std::min(image.width, image.height);
  const double upper = std::max(image.width, image.height);
  const int longest = static_cast<int>(shortest * upper / lower);
  return image.width <= image.height ? ImageSize{shortest, longest} : ImageSize{longest, shortest};
}

// Returns the begin of a central crop. If the number of rows or columns of padding is odd, there is
// one more after the image for torchvision's processors, and before it for Pillow's.
int CropBegin(int side, int crop, ResampledAs resampler) {
  if (side >= crop) return (side - crop) / 2;
  return -((crop - side + (resampler == ResampledAs::kTorchvision ? 0 : 1)) / 2);
}

ResizedWindow Whole(ImageSize size) { return {size, {0, 0, size.width, size.height}}; }

Status CheckCanvas(const ResizedWindow& canvas, ImageSize group, ImageSize image) {
  const auto [width, height] = canvas.window.size();
  const bool resizes = std::max(canvas.resized.width, canvas.resized.height) <= kMostResized &&
                       canvas.resized.width >= 1 && canvas.resized.height >= 1;
  const bool fits = resizes && width >= 1 && width <= kMaxSidePixels && height >= 1 &&
                    height <= kMaxSidePixels && int64_t{width} * height <= kMostCanvasPixels;
  if (fits && width % group.width == 0 && height % group.height == 0) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "an image of " + SizeText(image) + " pixels would be resized to " +
                        SizeText(resizes ? canvas.window.size() : canvas.resized) +
                        (fits ? ", which patches of " + SizeText(group) + " do not divide"
                              : ", which has no pixels, or too many"),
               .advice = "Change the size in the processor's configuration, or crop the image"};
}

}  // namespace

Result<ImagePlan> PlanImage(const ProcessorRecipe& recipe, ImageSize image) {
  ImagePlan plan{.image = image, .patch = recipe.patch};
  ResizedWindow& first = plan.canvases[0];
  first = Whole(image);
  switch (recipe.sizing) {
    case Sizing::kKept:
      break;
    case Sizing::kExact:
      first = Whole(recipe.size);
      break;
    case Sizing::kShortest:
      first = Whole(ShortestSize(recipe.shortest, image));
      break;
    case Sizing::kPixels: {
      ASSIGN_OR_RETURN(const ImageSize size, SmartSize(recipe, image));
      first = Whole(size);
      break;
    }
    case Sizing::kPatches:
      first = Whole(NaFlexSize(recipe, image));
      break;
    case Sizing::kPinpoints:
      first = Whole(recipe.size);
      plan.canvases[1] = OnPinpoint(BestPinpoint(recipe, image), image);
      plan.count = 2;
      break;
    case Sizing::kTiles: {
      const auto [columns, rows] = BestGrid(recipe, image);
      first = Whole({columns * recipe.size.width, rows * recipe.size.height});
      plan.canvases[1] = Whole(recipe.size);
      plan.count = columns * rows > 1 ? 2 : 1;
      if (plan.count == 1) plan.canvases[1] = {};
      break;
    }
  }
  if (recipe.crop) {
    first.window = {CropBegin(first.resized.width, recipe.crop->width, recipe.resampler),
                    CropBegin(first.resized.height, recipe.crop->height, recipe.resampler),
                    recipe.crop->width, recipe.crop->height};
  }
  if (plan.patch.width == 0) plan.patch = first.window.size();
  const ImageSize group{plan.patch.width * recipe.merge, plan.patch.height * recipe.merge};
  for (const ResizedWindow& canvas : plan.all()) {
    TRY(CheckCanvas(canvas, group, image));
    const auto [columns, rows] = plan.Grid(canvas);
    plan.rows += int64_t{columns} * rows;
  }
  if (recipe.padded_rows != 0 && plan.rows > recipe.padded_rows) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "an image of " + SizeText(image) + " pixels has " +
                          std::to_string(plan.rows) + " patches; at most " +
                          std::to_string(recipe.padded_rows) + " are allowed",
                 .advice = "Set do_resize to true, or raise max_num_patches"};
  }
  TRY(CheckRowBytes(recipe, plan));
  return plan;
}

Status CheckRowBytes(const ProcessorRecipe& recipe, const ImagePlan& plan) {
  const int64_t rows = std::max(plan.rows, recipe.padded_rows);
  const auto values = static_cast<double>(RowValues(recipe, plan.patch));
  if (static_cast<double>(rows) * values * sizeof(float) <= kMostRowBytes) return {};
  return Error{.code = Code::kResourceExhausted,
               .cause = "an image would have " + std::to_string(rows) + " rows of " +
                        SizeText(plan.patch) + " pixels, which take more than 4 GiB",
               .advice = "Change the size in the processor's configuration",
               .detail = Error::Detail::kOverLimits};
}

std::optional<ImagePlan> FixedPlan(const ProcessorRecipe& recipe) {
  if (recipe.padded_rows != 0) {
    return ImagePlan{.image = {}, .patch = recipe.patch, .rows = recipe.padded_rows};
  }
  const bool one = recipe.sizing == Sizing::kExact || recipe.crop.has_value();
  if (!one || recipe.patch.width != 0) return std::nullopt;
  return ImagePlan{.image = {}, .patch = recipe.crop.value_or(recipe.size), .rows = 1};
}

int64_t MostRowsOf(const ProcessorRecipe& recipe) {
  if (const std::optional<ImagePlan> fixed = FixedPlan(recipe)) return fixed->rows;
  const double patch = static_cast<double>(recipe.patch.width) * recipe.patch.height;
  const auto rows_of = [patch](ImageSize canvas) {
    return static_cast<double>(canvas.width) * canvas.height / patch;
  };
  double most =
      kMostRowBytes / (sizeof(float) * static_cast<double>(RowValues(recipe, recipe.patch)));
  switch (recipe.sizing) {
    case Sizing::kExact:
      most = std::min(most, rows_of(recipe.size));
      break;
    case Sizing::kPixels: {  // SmartSize, which rounds the sides of small and of thin images up
      const double factor = static_cast<double>(recipe.patch.width) * recipe.merge;
      const auto pixels = static_cast<double>(recipe.max_pixels);
      const auto least = static_cast<double>(recipe.min_pixels);
      const double thin = factor * std::sqrt(pixels * kMostAspect);
      const double small =
          (std::sqrt(least * kMostAspect) + factor) * (std::sqrt(least / kMostAspect) + factor);
      most = std::min(most, std::max({pixels, thin, small}) / patch);
      break;
    }
    case Sizing::kPinpoints: {
      double largest = 0;
      for (const ImageSize& point : recipe.pinpoints) largest = std::max(largest, rows_of(point));
      most = std::min(most, largest + 1);
      break;
    }
    case Sizing::kTiles:
      most = std::min(most, recipe.max_tiles + 1.0);
      break;
    case Sizing::kKept:
    case Sizing::kShortest:
    case Sizing::kPatches:
      break;
  }
  return static_cast<int64_t>(most);
}

size_t RowValues(const ProcessorRecipe& recipe, ImageSize patch) {
  return 3 * static_cast<size_t>(recipe.temporal) * static_cast<size_t>(patch.width) *
         static_cast<size_t>(patch.height);
}

std::vector<std::pair<std::string, std::string>> PartsOf(const ProcessorRecipe& recipe) {
  // Names all members: with a new one this does not compile. pads_batch changes no row.
  const auto& [family, sizing, size, shortest, least, most, pinpoints, min_tiles, max_tiles, crop,
               of_floats, patch, merge, temporal, padded_rows, pads_batch, interpolation, resampler,
               onto_white, rescales, normalizes, factor, mean, deviation] = recipe;
  constexpr std::array<const char*, 6> kFamilies{"plain",           "qwen", "naflex", "llava_next",
                                                 "llava_onevision", "tiles"};
  std::vector<std::pair<std::string, std::string>> parts;
  const auto add = [&parts](const char* name, std::string value) {
    parts.emplace_back(name, std::move(value));
  };
  const auto numbers = [](const std::array<double, 3>& of) {
    return NumberText(of[0]) + " " + NumberText(of[1]) + " " + NumberText(of[2]);
  };
  add("family", kFamilies[static_cast<size_t>(family)]);
  switch (sizing) {
    case Sizing::kKept:
      add("size", "the image's");
      break;
    case Sizing::kExact:
      add("size", SizeText(size));
      break;
    case Sizing::kShortest:
      add("size", "shorter side " + std::to_string(shortest));
      break;
    case Sizing::kPixels:
      add("size", std::to_string(least) + " to " + std::to_string(most) + " pixels");
      break;
    case Sizing::kPatches:
      add("size", "the most patches");
      break;
    case Sizing::kPinpoints: {
      std::string points;
      for (const ImageSize& point : pinpoints) points += SizeText(point) + ", ";
      add("size", SizeText(size) + " and pinpoints, hash " + std::to_string(Hash64(points)));
      break;
    }
    case Sizing::kTiles:
      add("size", std::to_string(min_tiles) + " to " + std::to_string(max_tiles) + " tiles of " +
                      SizeText(size));
      break;
  }
  if (crop) add("crop", SizeText(*crop));
  if (patch.width != 0) add("patch", SizeText(patch));
  if (merge != 1) add("merge", std::to_string(merge));
  if (temporal != 1) add("temporal", std::to_string(temporal));
  if (padded_rows != 0) add("padded_rows", std::to_string(padded_rows));
  add("resample", TextOf(interpolation, resampler) + (of_floats ? " of floats" : ""));
  if (onto_white) add("alpha", "on white");
  if (rescales) add("factor", NumberText(factor));
  if (normalizes) add("mean", numbers(mean));
  if (normalizes) add("std", numbers(deviation));
  return parts;
}

std::string TextOf(const ProcessorRecipe& recipe) {
  std::string text;
  for (const auto& [name, value] : PartsOf(recipe)) {
    if (!text.empty()) text.append(", ").append(name).append(" ");
    text += value;
  }
  return text;
}

Normalisation NormalisationOf(const ProcessorRecipe& recipe) {
  Normalisation by{{0, 0, 0}, {1, 1, 1}};
  const auto whole = static_cast<float>(1.0 / recipe.factor);
  for (size_t c = 0; c < 3; ++c) {
    if (recipe.normalizes) {
      by.mean[c] = static_cast<float>(recipe.mean[c]);
      by.deviation[c] = static_cast<float>(recipe.deviation[c]);
    }
    if (recipe.rescales) {
      by.mean[c] *= whole;
      by.deviation[c] *= whole;
    }
  }
  return by;
}

}  // namespace stoker
