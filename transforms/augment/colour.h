// Steps that look at the three channels of one pixel. All in place.
#pragma once

#include <cstdint>

#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

uint64_t SumOfGray(const Tile& tile);
void Recolour(const Grayscale& step, const Tile& tile);
void Recolour(const AdjustSaturation& step, const Tile& tile);

// Turns the hue by the step's share of the colour circle. With h in [0, 6) a channel is
// min + (max − min) w(h), where w is a trapezoid around the channel's place on the circle: the same
// as torchvision's six cases.
void Recolour(const AdjustHue& step, const Tile& tile);

template <typename One>
concept IsRecolouring = requires(One step, Tile tile) {
  Recolour(step, tile);
};

// The plain twins.
uint64_t SumOfGrayPlain(const Tile& tile);
void RecolourPlain(const Grayscale& step, const Tile& tile);
void RecolourPlain(const AdjustSaturation& step, const Tile& tile);
void RecolourPlain(const AdjustHue& step, const Tile& tile);

// torchvision goes from 0…1 back to bytes by 255.999, fraction dropped.
inline constexpr float kFromUnit = 255.999F / 255;

}  // namespace stoker
