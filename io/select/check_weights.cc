#include "io/select/check_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "io/select/sample_order.h"

namespace stoker {

namespace {

Error BadWeights(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

}  // namespace

Status CheckWeights(const std::string& what, std::span<const double> weights, uint64_t count,
                    const char* things) {
  if (weights.size() != count) {
    return BadWeights(what + ": there are " + std::to_string(weights.size()) + " weights for " +
                      std::to_string(count) + " " + things);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::isfinite(weights[i]) && weights[i] >= 0) continue;
    return BadWeights(
        what + ": weights[" + std::to_string(i) + "] is " + std::to_string(weights[i]),
        "Weights are finite, and 0 or more");
  }
  if (std::ranges::all_of(weights, [](double weight) { return weight == 0; })) {
    return BadWeights(what + ": all weights are 0");
  }
  return {};
}

Result<uint64_t> PositionsOfEpoch(const std::string& what, uint64_t samples, uint64_t standard) {
  const uint64_t positions = samples == 0 ? standard : samples;
  if (positions <= kMostPositions) return positions;
  return BadWeights(what + ": an epoch of " + std::to_string(positions) +
                    " samples is too long; at most 2^53 are possible");
}

}  // namespace stoker
