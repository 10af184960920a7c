#include <cmath>
#include <vector>

#include "transforms/augment/blur.h"
#include "transforms/augment/border.h"
#include "transforms/draw.h"

namespace stoker {

void GaussianWeights(int taps, double sigma, float* weights) {
  const auto weight = [=](int tap) {
    const double distance = (tap - taps / 2) / sigma, exponent = distance * distance / 2;
    return exponent < 700 ? Exp(-exponent) : 0.0;
  };
  double sum = 0;
  for (int t = 0; t < taps; ++t) sum += weight(t);
  for (int t = 0; t < taps; ++t) weights[t] = static_cast<float>(weight(t) / sum);
}

void BlurredPlain(const Tile& from, const Blur& blur, const Tile& to) {
  const auto [width, height] = from.size;
  std::vector<float> along(static_cast<size_t>(blur.taps.width));
  std::vector<float> down(static_cast<size_t>(blur.taps.height));
  GaussianWeights(blur.taps.width, blur.sigma_x, along.data());
  GaussianWeights(blur.taps.height, blur.sigma_y, down.data());
  std::vector<float> row(static_cast<size_t>(width));
  for (size_t c = 0; c < 3; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        float sum = 0;
        for (int t = 0; t < blur.taps.height; ++t) {
          const int64_t source = Reflected(y + t - blur.taps.height / 2, height);
          sum += down[static_cast<size_t>(t)] * from.row(c, static_cast<int>(source))[x];
        }
        row[static_cast<size_t>(x)] = sum;
      }
      for (int x = 0; x < width; ++x) {
        float sum = 0;
        for (int t = 0; t < blur.taps.width; ++t) {
          const int64_t source = Reflected(x + t - blur.taps.width / 2, width);
          sum += along[static_cast<size_t>(t)] * row[static_cast<size_t>(source)];
        }
        to.row(c, y)[x] = static_cast<uint8_t>(sum + 0x1p23F - 0x1p23F);
      }
    }
  }
}

}  // namespace stoker
