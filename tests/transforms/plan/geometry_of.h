// The geometry that a plan draws for an image, for plans that cannot fail.
#pragma once

#include "transforms/plan/plan.h"

namespace stoker::testing {

inline DrawnSample DrawnOf(const Plan& plan, const DrawKey& key, ImageSize image) {
  DrawnSample drawn;
  plan.Draw(key, image, drawn).value();
  return drawn;
}

inline Geometry GeometryOf(const Plan& plan, const DrawKey& key, ImageSize image) {
  return DrawnOf(plan, key, image).geometry;
}

}  // namespace stoker::testing
