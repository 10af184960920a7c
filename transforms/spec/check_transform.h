// What a transform's own options may be.
#pragma once

#include <optional>
#include <string>

#include "core/dtype.h"
#include "transforms/spec/transform.h"

namespace stoker {

// Why not, and what to do.
struct Refusal {
  std::string cause;  // "p = 2 is no probability"
  std::string advice;
};

// None when each option of the transform makes sense by itself, in a plan for values of `dtype`.
std::optional<Refusal> CheckTransform(const Transform& transform, DType dtype);

// A number as messages have it.
std::string NumberText(double value);
std::string NumberText(float value);

}  // namespace stoker
