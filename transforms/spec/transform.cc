#include "transforms/spec/transform.h"

namespace stoker {

namespace {

struct Name {
  const char* operator()(const Resize&) const { return "Resize"; }
  const char* operator()(const CenterCrop&) const { return "CenterCrop"; }
  const char* operator()(const RandomResizedCrop&) const { return "RandomResizedCrop"; }
  const char* operator()(const RandomHorizontalFlip&) const { return "RandomHorizontalFlip"; }
  const char* operator()(const Normalize&) const { return "Normalize"; }
  const char* operator()(const Pad&) const { return "Pad"; }
  const char* operator()(const RandomCrop&) const { return "RandomCrop"; }
  const char* operator()(const RandomVerticalFlip&) const { return "RandomVerticalFlip"; }
  const char* operator()(const ColorJitter&) const { return "ColorJitter"; }
  const char* operator()(const RandomGrayscale&) const { return "RandomGrayscale"; }
  const char* operator()(const GaussianBlur&) const { return "GaussianBlur"; }
  const char* operator()(const AutoAugment&) const { return "AutoAugment"; }
  const char* operator()(const RandAugment&) const { return "RandAugment"; }
  const char* operator()(const TrivialAugmentWide&) const { return "TrivialAugmentWide"; }
  const char* operator()(const RandomErasing&) const { return "RandomErasing"; }
};

}  // namespace

const char* NameOf(const Transform& transform) { return std::visit(Name{}, transform); }

}  // namespace stoker
