// DrawnSample: the drawn parameters of one sample: its random choices, without its pixels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/batch/image.h"
#include "transforms/augment/step.h"
#include "transforms/spec/fill.h"
#include "transforms/spec/interpolation.h"

namespace stoker {

inline constexpr uint32_t kMostParts = 9;  // samples of a row: those of a Mosaic

// The source of a sample's pixels: `box` of the image as viewed is resampled to `resized`, and
// `window` of the result is kept. Box and window may extend outside; pixels there are zero. All of
// this is fused with decoding.
struct Geometry {
  Rect box;                     // in the image as viewed
  ImageSize resized;            // the box's own size if nothing resamples
  Rect window;                  // in the resized box
  bool mirror_columns = false;  // of the kept window
  bool mirror_rows = false;
  bool antialias = true;
  Interpolation interpolation = Interpolation::kBilinear;
  ResampledAs resampler = ResampledAs::kPillow;
  bool mirrored_columns = false;  // before the box was resampled
  bool mirrored_rows = false;
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

// The points (x, y) with n[0] x + n[1] y + n[2] ≥ 0.
using HalfPlane = std::array<double, 3>;

// The place of one of several images in a row.
struct Placement {
  Rect part;   // of the row: what the image's piece writes; empty if that is nothing
  Rect image;  // the pixels of the image in the part; the others are `fill`
  Fill fill{};
  // Set if steps turn the image: the piece then writes what of `part` lies in both of these
  // half-planes of the row (ColumnsOf), and `image` is in the geometry's window.
  std::optional<std::array<HalfPlane, 2>> corner{};
};

// The canvas of a row whose images are changed together, once all are on it: after a Mosaic, with a
// CopyPaste or of nine that are turned; or, with a CopyPaste of another image's objects, of two,
// each on a tile of its own of the canvas's size. In pixels of the row; they may lie outside it.
struct Canvas {
  Rect all;
  Rect tile;   // what is made: the middle of its columns is that of all, and no other pixel of the
               // canvas comes into the row, also if it is mirrored left and right
  Rect whole;  // all of this image, resized
  uint32_t images = 1;  // on the canvas
};

// A step on the worker's tile, and the index of the transform that it belongs to.
struct DrawnStep {
  Step step;
  uint32_t transform = 0;
};

// A box of the finished row that is overwritten: within the image, or within its padding.
struct Erasure {
  Rect box;
  std::array<float, 3> value{};   // in the row's own values
  std::optional<uint64_t> noise;  // the key of normal numbers that replace `value`
  uint32_t transform = 0;
};

// The parameters in the order of execution. Reused from sample to sample.
struct DrawnSample {
  Geometry geometry;
  ImageSize size;  // of the image after all steps; the row may be larger (PadTo)
  // Set if the row has several images: `size` is then that of this image's part. With steps, the
  // geometry's window shows all of the part; without, only the image in it.
  std::optional<Placement> placed;
  std::optional<Canvas> canvas;  // set for one of its images: `placed` is then in the tile
  std::vector<DrawnStep> steps;  // empty: the geometry's pixels are the image
  std::vector<Erasure> erasures;
  // The images of its row that were drawn before it, and this one, by part, as viewed; 0 × 0 if
  // unknown. Kept from part to part: places in a Mosaic of nine depend on them.
  std::array<ImageSize, kMostParts> row_sizes{};
};

}  // namespace stoker
