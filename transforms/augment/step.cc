#include "transforms/augment/step.h"

namespace stoker {

namespace {

struct Name {
  const char* operator()(const AdjustBrightness&) const { return "AdjustBrightness"; }
  const char* operator()(const AdjustContrast&) const { return "AdjustContrast"; }
  const char* operator()(const AdjustSaturation&) const { return "AdjustSaturation"; }
  const char* operator()(const AdjustSharpness&) const { return "AdjustSharpness"; }
  const char* operator()(const AdjustHue&) const { return "AdjustHue"; }
  const char* operator()(const Grayscale&) const { return "Grayscale"; }
  const char* operator()(const Posterize&) const { return "Posterize"; }
  const char* operator()(const Solarize&) const { return "Solarize"; }
  const char* operator()(const Invert&) const { return "Invert"; }
  const char* operator()(const AutoContrast&) const { return "AutoContrast"; }
  const char* operator()(const Equalize&) const { return "Equalize"; }
  const char* operator()(const Blur&) const { return "Blur"; }
  const char* operator()(const Affine&) const { return "Affine"; }
  const char* operator()(const Reframe&) const { return "Reframe"; }
  const char* operator()(const Mirror&) const { return "Mirror"; }
};

}  // namespace

const char* NameOf(const Step& step) { return std::visit(Name(), step); }

}  // namespace stoker
