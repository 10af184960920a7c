// Interpolation: the filters that compute pixels of a resized image.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

// Pillow's filters. kNearest takes one pixel; kBox averages the pixels whose centers lie in the
// output's box; kBilinear is a triangle, kBicubic is Keys' cubic with a = −0.5, kLanczos has three
// lobes. The last two have negative weights, so results can overshoot and are clamped. All but
// kBilinear give Pillow's pixels; kBilinear's are within one level of them.
enum class Interpolation : uint8_t { kNearest, kBilinear, kBicubic, kLanczos, kBox };

inline constexpr Interpolation kInterpolations[] = {
    Interpolation::kBilinear, Interpolation::kBicubic, Interpolation::kLanczos, Interpolation::kBox,
    Interpolation::kNearest};

const char* NameOf(Interpolation interpolation);  // torchvision's name: "nearest", …
std::optional<Interpolation> InterpolationOf(std::string_view name);

// The library whose pixels a resized image has. kPillow: as Interpolation says. kPillowExact:
// Pillow's, with antialias also for kBilinear; slower. kTorchvision: torchvision's for uint8
// tensors on CPUs with AVX2; kBilinear, kBicubic and kLanczos, antialiased only.
enum class ResampledAs : uint8_t { kPillow, kPillowExact, kTorchvision };

inline constexpr ResampledAs kResamplers[] = {ResampledAs::kPillow, ResampledAs::kPillowExact,
                                              ResampledAs::kTorchvision};

const char* NameOf(ResampledAs resampler);  // "pillow", …

// Returns "bilinear", or "bilinear (torchvision)" if the resampler is not the default.
std::string TextOf(Interpolation interpolation, ResampledAs resampler);

// Whether each axis is resampled separately, to bytes, with that library's fixed-point weights.
constexpr bool InSteps(Interpolation interpolation, ResampledAs resampler) {
  return interpolation != Interpolation::kNearest &&
         (interpolation != Interpolation::kBilinear || resampler != ResampledAs::kPillow);
}

// How an image is resampled.
struct ResamplingFilter {
  bool antialias = true;
  Interpolation interpolation = Interpolation::kBilinear;
  ResampledAs resampler = ResampledAs::kPillow;
};

// Whether the filter widens when shrinking.
constexpr bool Widens(Interpolation interpolation, bool antialias) {
  return antialias && interpolation != Interpolation::kNearest;
}

}  // namespace stoker
