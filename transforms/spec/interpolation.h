// Interpolation: the filters that compute pixels of a resized image.
#pragma once

#include <cstdint>
#include <optional>
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

// Whether each axis is resampled separately, to bytes, with Pillow's fixed-point weights.
constexpr bool InSteps(Interpolation interpolation) {
  return interpolation == Interpolation::kBicubic || interpolation == Interpolation::kLanczos ||
         interpolation == Interpolation::kBox;
}

// Whether the filter widens when shrinking.
constexpr bool Widens(Interpolation interpolation, bool antialias) {
  return antialias && interpolation != Interpolation::kNearest;
}

}  // namespace stoker
