// Explains in words how a plan executes each transform.
#pragma once

#include <string>
#include <vector>

#include "transforms/mix/batch_mix.h"
#include "transforms/plan/plan.h"
#include "transforms/spec/transform_table.h"  // TextOf a transform

namespace stoker {

struct ExplainedTransform {
  std::string transform;  // "RandomResizedCrop(224 × 224)"
  std::string where;      // "fused", "tile" or "row"
  std::string how;        // "only its box is decoded, and resampled while its rows are"
};

// One entry for each transform of the plan, in order.
std::vector<ExplainedTransform> Explain(const Plan& plan);

std::string TextOf(const BatchMix& mix);  // "MixUp(alpha 0.2) or CutMix"

}  // namespace stoker
