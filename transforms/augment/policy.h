// Draws the operations of AutoAugment, RandAugment, TrivialAugmentWide and AugMix, with their
// strength and direction, as torchvision defines them.
#pragma once

#include <vector>

#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "transforms/plan/drawn.h"
#include "transforms/spec/transform.h"

namespace stoker {

// Appends the steps (with `transform` 0) for an image of `size`; an operation that changes nothing
// appends none.
void DrawPolicy(const AutoAugment& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps);
void DrawPolicy(const RandAugment& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps);
void DrawPolicy(const TrivialAugmentWide& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps);
void DrawPolicy(const AugMix& policy, ImageSize size, RandomStream& random,
                std::vector<DrawnStep>& steps);  // one Mix

}  // namespace stoker
