// Checks the weights that users give.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/result.h"

namespace stoker {

// InvalidArgument, with the index of the weight: another number of weights than `count`; one that
// is negative or not finite; all are 0. `what` begins the message, `things` says what has weights:
// "samples".
Status CheckWeights(const std::string& what, std::span<const double> weights, uint64_t count,
                    const char* things);

// `samples`, or if that is 0 `standard`. InvalidArgument: more than kMostPositions.
Result<uint64_t> PositionsOfEpoch(const std::string& what, uint64_t samples, uint64_t standard);

}  // namespace stoker
