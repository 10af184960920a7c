#include "transforms/transform.h"

namespace stoker {

namespace {

struct Name {
  const char* operator()(const Resize&) const { return "Resize"; }
  const char* operator()(const CenterCrop&) const { return "CenterCrop"; }
  const char* operator()(const RandomResizedCrop&) const { return "RandomResizedCrop"; }
  const char* operator()(const RandomHorizontalFlip&) const { return "RandomHorizontalFlip"; }
  const char* operator()(const Normalize&) const { return "Normalize"; }
};

}  // namespace

const char* NameOf(const Transform& transform) { return std::visit(Name{}, transform); }

}  // namespace stoker
