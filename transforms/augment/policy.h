// What AutoAugment, RandAugment and TrivialAugmentWide draw, as torchvision defines them: which
// operations, how strong, in which direction.
#pragma once

#include <vector>

#include "core/image.h"
#include "core/random.h"
#include "transforms/plan/drawn.h"
#include "transforms/spec/transform.h"

namespace stoker {

// Appends the steps (their `transform` is left 0) for an image of `size`; none for an operation
// that changes nothing.
void DrawPolicy(const AutoAugment& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps);
void DrawPolicy(const RandAugment& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps);
void DrawPolicy(const TrivialAugmentWide& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps);

}  // namespace stoker
