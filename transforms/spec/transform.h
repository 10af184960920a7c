// What a user asks for: torchvision's names and meanings, as plain values. A Plan compiles a list
// of them.
#pragma once

#include <array>
#include <variant>

#include "transforms/spec/augmentations.h"
#include "transforms/spec/fill.h"

namespace stoker {

// All images are RGB, 8 bits a channel; gray ones get three equal channels. Sizes are in pixels.

// Bilinear. With `size` > 0 the shorter side becomes `size` and the longer one
// int(size × long / short); with `size` == 0 the image becomes exactly width × height.
// antialias: the triangle filter widens when shrinking, as in Pillow and torchvision; without, two
// taps, as in tf.image.resize and OpenCV.
struct Resize {
  int size = 0;
  int height = 0;
  int width = 0;
  bool antialias = true;
};

// The middle height × width pixels, offsets rounded half to even; an image that is too small is
// padded with zeros.
struct CenterCrop {
  int height = 0;
  int width = 0;
};

// A box of random area (a share of the image's in `scale`) and aspect ratio (width / height, log-
// uniform in `ratio`) at a uniform place, resized to height × width; after ten attempts that do not
// fit, the largest central box within `ratio`. The box is cut before it is resized.
struct RandomResizedCrop {
  int height = 0;
  int width = 0;
  std::array<double, 2> scale{0.08, 1.0};
  std::array<double, 2> ratio{3.0 / 4.0, 4.0 / 3.0};
  bool antialias = true;
};

// Pixels to add at each side.
struct Margins {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  friend bool operator==(const Margins&, const Margins&) = default;
};

struct Pad {
  Margins padding;
  Fill fill{};
  Padding padding_mode = Padding::kConstant;
};

// height × width pixels at a uniform place, after padding. An image that is smaller is an error;
// with pad_if_needed it is padded first, on both sides by all that it lacks.
struct RandomCrop {
  int height = 0;
  int width = 0;
  Margins padding{};
  bool pad_if_needed = false;
  Fill fill{};
  Padding padding_mode = Padding::kConstant;
};

// Left and right change places with probability p.
struct RandomHorizontalFlip {
  double p = 0.5;
};

// Top and bottom change places with probability p.
struct RandomVerticalFlip {
  double p = 0.5;
};

// (value / 255 − mean) / std for each channel; needs a dtype of fractions.
struct Normalize {
  std::array<float, 3> mean{};
  std::array<float, 3> std{1, 1, 1};
};

using Transform =
    std::variant<Resize, CenterCrop, RandomResizedCrop, RandomHorizontalFlip, Normalize, Pad,
                 RandomCrop, RandomVerticalFlip, ColorJitter, RandomGrayscale, GaussianBlur,
                 AutoAugment, RandAugment, TrivialAugmentWide, RandomErasing>;

const char* NameOf(const Transform& transform);  // "Resize", …

}  // namespace stoker
