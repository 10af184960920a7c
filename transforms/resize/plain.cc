#include "transforms/resize/plain.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace stoker {

namespace {

// Integer weights of all samples of a box of `in` for one output: steps of the rounded running sum
// of a triangle. Distances are in units of 1 / (2 × out) sample.
std::vector<int> TriangleWeights(int64_t in, int64_t out, int64_t output, bool antialias) {
  const int64_t support = 2 * (antialias ? std::max(in, out) : out);
  const int64_t centre = (2 * output + 1) * in;
  std::vector<int64_t> triangle(static_cast<size_t>(in));
  int64_t sum = 0;
  for (int64_t x = 0; x < in; ++x) {
    const int64_t weight = std::max<int64_t>(0, support - std::abs((2 * x + 1) * out - centre));
    triangle[static_cast<size_t>(x)] = weight;
    sum += weight;
  }
  const double one =
      std::ldexp(1.0, WeightShift(static_cast<int>(in), static_cast<int>(out), antialias));
  const double factor = one / static_cast<double>(sum);
  std::vector<int> weights;
  int64_t running = 0;
  int before = 0;
  for (int64_t weight : triangle) {
    running += weight;
    const int after = static_cast<int>(std::floor(static_cast<double>(running) * factor + 0.5));
    weights.push_back(after - before);
    before = after;
  }
  return weights;
}

int Sample(const ImageView& image, int64_t x, int64_t y, size_t channel) {
  if (x < 0 || y < 0 || x >= image.size.width || y >= image.size.height) return 0;
  switch (image.layout) {
    case PixelLayout::kGray:
      return image.plane[0][y * image.stride[0] + x];
    case PixelLayout::kInterleaved:
      return image.plane[0][y * image.stride[0] + 3 * x + static_cast<int64_t>(channel)];
    case PixelLayout::kPlanar:
      return image.plane[channel][y * image.stride[channel] + x];
  }
  return 0;
}

// Computes one channel of one pixel of the resized box: vertically, then horizontally.
uint8_t Resampled(const ImageView& image, const Resampling& task, const std::vector<int>& along,
                  const std::vector<int>& down, size_t channel) {
  const int along_shift = WeightShift(task.box.width, task.resized.width, task.antialias);
  const int down_shift = WeightShift(task.box.height, task.resized.height, task.antialias);
  const int middle_bits = MiddleBits(along_shift);
  int64_t sum = 0;
  for (size_t x = 0; x < along.size(); ++x) {
    if (along[x] == 0) continue;
    int64_t column = 0;
    for (size_t y = 0; y < down.size(); ++y) {
      if (down[y] == 0) continue;
      column += down[y] * Sample(image, task.box.x + static_cast<int64_t>(x),
                                 task.box.y + static_cast<int64_t>(y), channel);
    }
    const int shift = down_shift - middle_bits;
    sum += along[x] * ((column + (int64_t{1} << (shift - 1))) >> shift);
  }
  const int shift = along_shift + middle_bits;
  return static_cast<uint8_t>((sum + (int64_t{1} << (shift - 1))) >> shift);
}

bool Inside(int value, int size) { return value >= 0 && value < size; }

}  // namespace

void ResamplePlain(const ImageView& image, const Resampling& task, const PixelOutput& output) {
  const Rect& window = task.window;
  const bool transpose = task.turn.transpose;
  const int width = transpose ? window.height : window.width;
  const int height = transpose ? window.width : window.height;
  const RowFormat format(output, {width, height});
  auto* const row = static_cast<uint8_t*>(output.row);
  std::vector<std::vector<int>> along(static_cast<size_t>(window.width));
  for (int x = 0; x < window.width; ++x) {
    if (!Inside(window.x + x, task.resized.width)) continue;
    along[static_cast<size_t>(x)] =
        TriangleWeights(task.box.width, task.resized.width, window.x + x, task.antialias);
  }
  for (int y = 0; y < window.height; ++y) {
    std::vector<int> down;
    if (Inside(window.y + y, task.resized.height)) {
      down = TriangleWeights(task.box.height, task.resized.height, window.y + y, task.antialias);
    }
    for (int x = 0; x < window.width; ++x) {
      int to_x = transpose ? y : x, to_y = transpose ? x : y;
      if (task.turn.mirror_columns) to_x = width - 1 - to_x;
      if (task.turn.mirror_rows) to_y = height - 1 - to_y;
      uint8_t rgb[3];
      for (size_t c = 0; c < 3; ++c) {
        rgb[c] = Resampled(image, task, along[static_cast<size_t>(x)], down, c);
      }
      StorePixel(format, rgb, row + to_y * format.down + to_x * format.along);
    }
  }
}

}  // namespace stoker
