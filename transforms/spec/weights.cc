#include "transforms/spec/weights.h"

#include <algorithm>

#include "core/result/plural.h"
#include "transforms/spec/option.h"

namespace stoker {

std::optional<std::string> CheckWeights(std::span<const double> p, size_t choices) {
  if (p.empty()) return {};
  if (p.size() != choices) {
    return "p has " + std::to_string(p.size()) + Plural(p.size(), " element", " elements") +
           "; it must have " + std::to_string(choices) + ", one for each transform";
  }
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (!(p[i] >= 0 && p[i] <= 1e300)) {  // limited, so that their sum is finite
      return "p[" + std::to_string(i) + "] is " + NumberText(p[i]) +
             "; it must be a finite number from 0 on";
    }
    sum += p[i];
  }
  if (sum > 0) return {};
  return "p is 0 for every transform; one must be positive";
}

size_t ChooseIndex(double uniform, std::span<const double> p, size_t choices) {
  if (p.empty()) {
    return std::min(static_cast<size_t>(uniform * static_cast<double>(choices)), choices - 1);
  }
  double sum = 0;
  for (const double weight : p) sum += weight;
  size_t chosen = 0;
  double below = 0;
  for (size_t i = 0; i < choices; ++i) {
    if (p[i] == 0) continue;
    chosen = i;
    below += p[i];
    if (uniform * sum < below) break;
  }
  return chosen;
}

}  // namespace stoker
