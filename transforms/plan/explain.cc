#include "transforms/plan/explain.h"

#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

ExplainedTransform ExplainOne(const Transform& transform, ExecutionSite site) {
  switch (site) {
    case ExecutionSite::kFused:
      return {TextOf(transform), "fused", RowOf(transform).how};
    case ExecutionSite::kTile:
      return {TextOf(transform), "tile", "on the resized image, in the worker's cache"};
    case ExecutionSite::kRow:
      return {TextOf(transform), "row", RowOf(transform).how};
  }
  return {};
}

}  // namespace

std::string TextOf(const BatchMix& mix) {
  std::string text;
  for (const auto& choice : mix.choices) {
    const bool cut = std::holds_alternative<CutMix>(choice);
    const double alpha = std::visit([](const auto& m) { return m.alpha; }, choice);
    text += std::string(text.empty() ? "" : " or ") + (cut ? "CutMix" : "MixUp");
    if (alpha != 1) text += "(alpha " + NumberText(alpha) + ")";
  }
  return text;
}

std::vector<ExplainedTransform> Explain(const Plan& plan) {
  std::vector<ExplainedTransform> explained;
  explained.reserve(plan.transforms().size());
  for (size_t i = 0; i < plan.transforms().size(); ++i) {
    explained.push_back(ExplainOne(plan.transforms()[i], plan.sites()[i]));
  }
  return explained;
}

}  // namespace stoker
