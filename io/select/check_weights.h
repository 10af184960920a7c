// Checks the weights that users give.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/result/result.h"

namespace stoker {

// InvalidArgument, with the index of the weight: there are not `count` weights; one is negative or
// not finite; all are 0. `what` begins the message; `things` are the weighted objects: "samples".
Status CheckWeights(const std::string& what, std::span<const double> weights, uint64_t count,
                    const char* things);

// Returns `samples`, or `standard` if that is 0. InvalidArgument: more than kMostPositions.
Result<uint64_t> PositionsOfEpoch(const std::string& what, uint64_t samples, uint64_t standard);

}  // namespace stoker
