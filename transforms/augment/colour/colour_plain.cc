#include <algorithm>
#include <cmath>

#include "transforms/augment/colour/blend.h"
#include "transforms/augment/colour/colour.h"

namespace stoker {

namespace {

// Calls change(r, g, b) with references to the channels of each pixel.
template <typename Change>
void ForEachPixel(const Tile& tile, Change change) {
  uint8_t *red = tile.plane(0), *green = tile.plane(1), *blue = tile.plane(2);
  for (size_t i = 0; i < tile.plane_bytes(); ++i) change(red[i], green[i], blue[i]);
}

// Returns the hue of a pixel in sixths of the circle, −1…5; 0 for gray.
float HueOf(int red, int green, int blue, int most, int range) {
  const auto span = static_cast<float>(std::max(range, 1));
  if (most == red) return static_cast<float>(green - blue) / span;
  if (most == green) return static_cast<float>(blue - red) / span + 2;
  return static_cast<float>(red - green) / span + 4;
}

// Turns the hue of each pixel. value(least, range, weight) is what a channel becomes, before it is
// cut to a byte: of the least channel, the range to the largest one, and a weight of it, 0…1.
template <typename Value>
void TurnHues(const Tile& tile, float shift, Value value) {
  ForEachPixel(tile, [=](uint8_t& r, uint8_t& g, uint8_t& b) {
    const int most = std::max({r, g, b}), least = std::min({r, g, b}), range = most - least;
    float hue = HueOf(r, g, b, most, range) + 6 * shift;
    if (hue < 0) hue += 6;
    if (hue >= 6) hue -= 6;
    const auto channel = [&](float weight) {
      return CutToByte(value(static_cast<float>(least), static_cast<float>(range),
                             std::clamp(weight, 0.0F, 1.0F)));
    };
    r = channel(std::abs(hue - 3) - 1);
    g = channel(2 - std::abs(hue - 2));
    b = channel(2 - std::abs(hue - 4));
  });
}

}  // namespace

uint64_t SumOfGrayPlain(const Tile& tile) {
  uint64_t sum = 0;
  ForEachPixel(tile, [&sum](uint8_t r, uint8_t g, uint8_t b) {
    sum += static_cast<uint64_t>(GrayOf(r, g, b));
  });
  return sum;
}

void RecolourPlain(const Grayscale& /*step*/, const Tile& tile) {
  ForEachPixel(tile, [](uint8_t& r, uint8_t& g, uint8_t& b) {
    r = g = b = static_cast<uint8_t>(GrayOf(r, g, b));
  });
}

void RecolourPlain(const AdjustSaturation& step, const Tile& tile) {
  const BlendWeights blend(step.factor);
  ForEachPixel(tile, [&blend](uint8_t& r, uint8_t& g, uint8_t& b) {
    const auto gray = static_cast<float>(GrayOf(r, g, b));
    for (uint8_t* value : {&r, &g, &b}) *value = blend(*value, gray);
  });
}

void RecolourPlain(const AdjustHue& step, const Tile& tile) {
  TurnHues(tile, step.shift, [](float least, float range, float weight) {
    return (least + range * weight) * kFromUnit;
  });
}

void RecolourPlain(const AdjustHsv& step, const Tile& tile) {
  TurnHues(tile, step.shift, [&step](float least, float range, float weight) {
    const float most = least + range, value = std::min(most * step.value, 255.0F);
    const float saturation = std::min(range * step.saturation / std::max(most, 1.0F), 1.0F);
    const float new_range = value * saturation;
    return value - new_range + new_range * weight + 0.5F;
  });
}

}  // namespace stoker
