// Steps that combine the three channels of a pixel, in place.
#pragma once

#include <cstdint>

#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

uint64_t SumOfGray(const Tile& tile);
void Recolour(const Grayscale& step, const Tile& tile);
void Recolour(const AdjustSaturation& step, const Tile& tile);

// Rotates the hue by the step's shift. With h in [0, 6) a channel is min + (max − min) w(h), where
// w is a trapezoid around the channel's position on the color circle, which equals torchvision's
// six cases.
void Recolour(const AdjustHue& step, const Tile& tile);

// Does so as well, and multiplies saturation, (max − min) / max, and value, max. Results are
// rounded to the nearest byte.
void Recolour(const AdjustHsv& step, const Tile& tile);

template <typename One>
concept IsRecolouring = requires(One step, Tile tile) {
  Recolour(step, tile);
};

// The references.
uint64_t SumOfGrayPlain(const Tile& tile);
void RecolourPlain(const Grayscale& step, const Tile& tile);
void RecolourPlain(const AdjustSaturation& step, const Tile& tile);
void RecolourPlain(const AdjustHue& step, const Tile& tile);
void RecolourPlain(const AdjustHsv& step, const Tile& tile);

// torchvision converts 0…1 to bytes by multiplying with 255.999 and dropping the fraction.
inline constexpr float kFromUnit = 255.999F / 255;

}  // namespace stoker
