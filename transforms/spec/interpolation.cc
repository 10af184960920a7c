#include "transforms/spec/interpolation.h"

namespace stoker {

const char* NameOf(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kNearest:
      return "nearest";
    case Interpolation::kBilinear:
      return "bilinear";
    case Interpolation::kBicubic:
      return "bicubic";
    case Interpolation::kLanczos:
      return "lanczos";
    case Interpolation::kBox:
      return "box";
  }
  return "";
}

const char* NameOf(ResampledAs resampler) {
  switch (resampler) {
    case ResampledAs::kPillow:
      return "pillow";
    case ResampledAs::kPillowExact:
      return "pillow_exact";
    case ResampledAs::kTorchvision:
      return "torchvision";
  }
  return "";
}

std::string TextOf(Interpolation interpolation, ResampledAs resampler) {
  std::string text = NameOf(interpolation);
  if (resampler != ResampledAs::kPillow) text += std::string(" (") + NameOf(resampler) + ")";
  return text;
}

std::optional<Interpolation> InterpolationOf(std::string_view name) {
  for (const Interpolation interpolation : kInterpolations) {
    if (name == NameOf(interpolation)) return interpolation;
  }
  return std::nullopt;
}

}  // namespace stoker
