// Weights of a random choice: one for each choice, or empty if all are equal.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace stoker {

// Returns nullopt if these are valid weights of `choices` choices: finite, not negative, with a
// positive sum; otherwise the fault of `p`: "p has 1 element; …".
std::optional<std::string> CheckWeights(std::span<const double> p, size_t choices);

// Returns the index that a uniform number in [0, 1) chooses. Preconditions: the weights are valid,
// and there is a choice.
size_t ChooseIndex(double uniform, std::span<const double> p, size_t choices);

}  // namespace stoker
