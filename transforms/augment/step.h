// Steps: operations on a resized image with 8 bits per channel, with all random parameters drawn.
// Names, parameters and results are those of torchvision (transforms.v2.functional on uint8
// tensors).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/batch/image.h"
#include "transforms/spec/fill.h"
#include "transforms/spec/interpolation.h"

namespace stoker {

// A blend is value × factor + other × (1 − factor), with both weights rounded to binary32, the sum
// rounded once more, clamped to 0…255, and the fraction dropped (blend.h). Gray is floor(0.2989 R +
// 0.587 G + 0.114 B), exact. Factors are finite.
struct AdjustBrightness {
  static constexpr const char* kName = "AdjustBrightness";
  float factor = 1;  // ≥ 0: value × factor
};
struct AdjustContrast {
  static constexpr const char* kName = "AdjustContrast";
  double factor = 1;  // ≥ 0: a blend with the mean of gray
};
struct AdjustSaturation {
  static constexpr const char* kName = "AdjustSaturation";
  double factor = 1;  // ≥ 0: a blend with gray
};
struct AdjustSharpness {
  static constexpr const char* kName = "AdjustSharpness";
  double factor = 1;  // ≥ 0: a blend with the image smoothed by 3 × 3; the border is unchanged
};
struct AdjustHue {
  static constexpr const char* kName = "AdjustHue";
  float shift = 0;  // rotation of the HSV hue, −½…½ turns
};
struct AdjustHsv {  // hue, saturation and value, of the HSV hexcone, of each pixel
  static constexpr const char* kName = "AdjustHsv";
  float shift = 0;       // as that of AdjustHue
  float saturation = 1;  // ≥ 0: a factor; the result is at most 1
  float value = 1;       // ≥ 0: a factor; the result is at most 255
};
struct Grayscale {  // three equal channels
  static constexpr const char* kName = "Grayscale";
};
struct PermuteChannels {
  static constexpr const char* kName = "PermuteChannels";
  std::array<uint8_t, 3> from{0, 1, 2};  // a permutation: channel c becomes what from[c] was
};
struct Posterize {
  static constexpr const char* kName = "Posterize";
  int bits = 8;  // 0…8: the number of high bits kept
};
struct Solarize {
  static constexpr const char* kName = "Solarize";
  float threshold = 255;  // values ≥ threshold are inverted
};
struct Invert {
  static constexpr const char* kName = "Invert";
};
struct AutoContrast {  // each channel stretched to 0…255
  static constexpr const char* kName = "AutoContrast";
};
struct Equalize {  // each channel's histogram equalized
  static constexpr const char* kName = "Equalize";
};

// The kernel of each axis is exp(−x² / 2σ²), normalized, with an odd number of taps; borders are
// reflected.
struct Blur {
  static constexpr const char* kName = "Blur";
  ImageSize taps{1, 1};
  double sigma_x = 1;
  double sigma_y = 1;
};

// Noise that is added to source positions (elastic.h).
struct ElasticNoise {
  uint64_t key = 0;
  double alpha = 0;  // ≥ 0: of the noise along each axis before it is blurred, in half pixels
  double sigma = 0;  // ≥ 0: of the blur, in pixels
  friend bool operator==(const ElasticNoise&, const ElasticNoise&) = default;
};

// Output pixel (x, y), in pixels from the image's center, comes from source position (m[0] x + m[1]
// y + m[2], m[3] x + m[4] y + m[5]), also relative to the center. `padding` determines pixels
// outside the image. With a divisor d, which needs kConstant, the map is a projective one: both
// numbers are divided by d[0] x + d[1] y + 1. With noise, which needs kConstant, no divisor and no
// other size, positions are moved by it.
struct Affine {
  static constexpr const char* kName = "Affine";
  std::array<double, 6> matrix{1, 0, 0, 0, 1, 0};
  Interpolation interpolation = Interpolation::kNearest;
  Fill fill{};
  // For kBilinear, kConstant and a pixel that is partly inside: its value is weighted again, inside
  // × pixel + (1 − inside) × fill, as torchvision does when it is given a fill.
  bool fade = false;
  Padding padding = Padding::kConstant;
  std::array<double, 2> divisor{};
  std::optional<ElasticNoise> noise{};
  std::optional<ImageSize> size{};  // of the output; if not set, that of the image
};

// Crops to `window`, which may extend outside the image; `padding` determines the pixels there.
struct Reframe {
  static constexpr const char* kName = "Reframe";
  Rect window;
  Padding padding = Padding::kConstant;
  Fill fill{};
};

struct Mirror {
  static constexpr const char* kName = "Mirror";
  bool columns = false;  // swap left and right
  bool rows = false;     // swap top and bottom
};

// Another image of the same size, or the mirrored image (left and right), where `inside` is 1, and
// the image where it is 0.
struct Paste {
  static constexpr const char* kName = "Paste";
  const uint8_t* inside = nullptr;  // of each pixel; null if it is 0 everywhere; not owned
  const uint8_t* other = nullptr;   // planes as those of a Tile; null if it is the mirrored image
};

struct ChainedStep;

// The image and copies of it that chains of steps have changed, which keep its size: the sum of
// them, each times its weight, with roundings to binary32, in the order of the chains; the fraction
// is dropped. Weights are ≥ 0, and their sum is 1 or rounded. Chains move no masks and no objects.
struct Mix {
  static constexpr const char* kName = "Mix";
  struct Chain {
    float weight = 0;
    std::vector<ChainedStep> steps;
  };
  float weight = 1;  // of the image itself
  std::vector<Chain> chains;
};

using Step =
    std::variant<AdjustBrightness, AdjustContrast, AdjustSaturation, AdjustSharpness, AdjustHue,
                 AdjustHsv, Grayscale, PermuteChannels, Posterize, Solarize, Invert, AutoContrast,
                 Equalize, Blur, Affine, Reframe, Mirror, Paste, Mix>;

struct ChainedStep {
  Step step;
};

inline const char* NameOf(const Step& step) {
  return std::visit([](const auto& one) { return one.kName; }, step);
}

}  // namespace stoker
