// Texts for the labels of a batch.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/batch/batch.h"

namespace stoker {

// Returns the text of each row's label: the class's name, or its number if it has no name; of mixed
// labels, which are weights, the sum of classes: "cat 0.70 + dog 0.30". Control characters are
// escaped. Returns nothing if the column has neither class numbers (integers, or bool) nor weights
// (float32, a row for each sample).
std::vector<std::string> LabelTexts(const Column& labels, std::span<const std::string> classes);

}  // namespace stoker
