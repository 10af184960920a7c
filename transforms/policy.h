// What AutoAugment, RandAugment and TrivialAugmentWide draw, as torchvision defines them: which
// operations, how strong, in which direction.
#pragma once

#include <vector>

#include "engine/core/image.h"
#include "engine/core/random.h"
#include "transforms/augmentations.h"
#include "transforms/drawn.h"

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
