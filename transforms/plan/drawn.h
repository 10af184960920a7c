// What has been drawn for one sample: everything random about it, and nothing of its pixels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/image.h"
#include "transforms/augment/step.h"

namespace stoker {

// Where a sample's pixels come from: `box` of the image as viewed is resampled to `resized`, and
// `window` of that is kept. Both may reach outside what they are cut from; pixels there are zero.
// All of it is fused with decoding.
struct Geometry {
  Rect box;                     // in the image as viewed
  ImageSize resized;            // size of the box as it is where nothing resamples
  Rect window;                  // in the resized box
  bool mirror_columns = false;  // of what is kept
  bool mirror_rows = false;
  bool antialias = true;
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

// A step on the worker's tile, and the place of the transform that asked for it.
struct DrawnStep {
  Step step;
  uint32_t transform = 0;
};

// A box of the finished row that is overwritten.
struct Erasure {
  Rect box;
  std::array<float, 3> value{};   // in the row's own values
  std::optional<uint64_t> noise;  // the key of normal numbers in place of `value`
  uint32_t transform = 0;
};

// In the order in which it is done. Reused from sample to sample.
struct DrawnSample {
  Geometry geometry;
  std::vector<DrawnStep> steps;  // none: the geometry's pixels are the row
  std::vector<Erasure> erasures;
};

}  // namespace stoker
