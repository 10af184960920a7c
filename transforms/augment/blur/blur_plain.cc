#include <cmath>
#include <vector>

#include "transforms/augment/blur/blur.h"
#include "transforms/augment/geometry/border.h"
#include "transforms/plan/draw.h"

namespace stoker {

namespace {

struct Kernel {
  Kernel(int taps, double sigma) : weights(static_cast<size_t>(taps)) {
    shift = GaussianWeights(taps, sigma, weights.data());
  }
  // Sums weighted values, divided by 1 << `drop` and rounded; value(i) is the pixel at distance i
  // from the middle.
  template <typename Value>
  int Sum(int drop, Value value) const {
    const auto taps = static_cast<int>(weights.size());
    int sum = 1 << (drop - 1);
    for (int t = 0; t < taps; ++t) sum += weights[static_cast<size_t>(t)] * value(t - taps / 2);
    return sum >> drop;
  }
  std::vector<int16_t> weights;
  int shift;
};

}  // namespace

double GaussianWeight(int tap, int taps, double sigma) {
  const int pixels = tap - taps / 2;
  const double distance = pixels == 0 ? 0 : pixels / sigma, exponent = distance * distance / 2;
  return exponent < 700 ? Exp(-exponent) : 0.0;
}

int GaussianWeights(int taps, double sigma, int16_t* weights) {
  const auto exact = [=](int tap) { return GaussianWeight(tap, taps, sigma); };
  double total = 0;
  for (int t = 0; t < taps; ++t) total += exact(t);
  int shift = 16;
  while (std::ldexp(1 / total, shift) > 32766) --shift;  // the largest is 1 / total
  // Steps of the rounded running sum: no error grows.
  double running = 0;
  int before = 0;
  for (int t = 0; t < taps; ++t) {
    running += exact(t);
    const auto after = static_cast<int>(std::floor(std::ldexp(running / total, shift) + 0.5));
    weights[t] = static_cast<int16_t>(after - before);
    before = after;
  }
  return shift;
}

void BlurPlain(const Tile& from, const Blur& blur, const Tile& to) {
  const auto [width, height] = from.size;
  const Kernel along(blur.taps.width, blur.sigma_x), down(blur.taps.height, blur.sigma_y);
  std::vector<int> middle(static_cast<size_t>(width));
  for (size_t c = 0; c < 3; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < from.size.width; ++x) {
        middle[static_cast<size_t>(x)] = down.Sum(down.shift - kMiddleBits, [&](int i) {
          return from.row(c, static_cast<int>(Reflected(y + i, from.size.height)))[x];
        });
      }
      for (int x = 0; x < from.size.width; ++x) {
        to.row(c, y)[x] = static_cast<uint8_t>(along.Sum(along.shift + kMiddleBits, [&](int i) {
          return middle[static_cast<size_t>(Reflected(x + i, from.size.width))];
        }));
      }
    }
  }
}

}  // namespace stoker
