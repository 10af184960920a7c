// Steps that look at the three channels of one pixel. All in place.
#pragma once

#include <cstdint>

#include "transforms/augment/tile.h"

namespace stoker {

uint64_t SumOfGray(const Tile& tile);
void MakeGray(const Tile& tile);  // three equal channels
void Saturate(const Tile& tile, double factor);

// Turns the hue by `shift` (−½…½) of the colour circle. With h in [0, 6) a channel is
// min + (max − min) w(h), where w is a trapezoid around the channel's place on the circle: the same
// as torchvision's six cases.
void ShiftHue(const Tile& tile, float shift);

// The plain twins.
uint64_t SumOfGrayPlain(const Tile& tile);
void MakeGrayPlain(const Tile& tile);
void SaturatePlain(const Tile& tile, double factor);
void ShiftHuePlain(const Tile& tile, float shift);

// torchvision goes from 0…1 back to bytes by 255.999, fraction dropped.
inline constexpr float kFromUnit = 255.999F / 255;

}  // namespace stoker
