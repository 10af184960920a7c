#include "transforms/augment/blur/blur_scratch.h"

#include <utility>

#include "transforms/augment/blur/blur.h"

namespace stoker {

namespace {

constexpr size_t kLine = 64;

// Takes the next `count` values of T, and adds their bytes.
template <typename T>
T* Take(size_t count, uint8_t* scratch, size_t& bytes) {
  const size_t first =
      std::exchange(bytes, bytes + (count * sizeof(T) + kLine - 1) / kLine * kLine);
  return scratch == nullptr ? nullptr : reinterpret_cast<T*>(scratch + first);
}

}  // namespace

BlurScratch::BlurScratch(const Blur& blur, ImageSize size, uint8_t* scratch) : bytes(0) {
  const auto width = static_cast<size_t>(size.width);
  const auto taps_along = static_cast<size_t>(blur.taps.width);
  const auto taps_down = static_cast<size_t>(blur.taps.height);
  ring_rows = blur.taps.height + 1;
  pair_row = (width + kBlurOvershoot + 15) / 16 * 16;
  pair_rows = Take<int32_t>(static_cast<size_t>(ring_rows) * pair_row, scratch, bytes);
  taps = Take<const int32_t*>(taps_down + 1, scratch, bytes);
  line = Take<int16_t>(width + 2 * taps_along + 2 * kBlurOvershoot, scratch, bytes);
  along = Take<int16_t>(taps_along + 1, scratch, bytes);
  down = Take<int16_t>(taps_down + 1, scratch, bytes);
}

BlurKernel::BlurKernel(int all_taps, double sigma, int16_t* room)
    : weights(room), taps(all_taps), shift(GaussianWeights(all_taps, sigma, room)) {
  room[all_taps] = 0;
  for (; taps > 1 && weights[0] == 0 && weights[taps - 1] == 0; taps -= 2) ++weights;
}

size_t BlurScratchBytes(const Blur& blur, ImageSize size) {
  return BlurScratch(blur, size, nullptr).bytes;
}

}  // namespace stoker
