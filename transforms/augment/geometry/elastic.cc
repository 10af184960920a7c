#include "transforms/augment/geometry/elastic.h"

#include <algorithm>

#include "core/numbers/philox.h"
#include "core/result/try.h"
#include "transforms/augment/blur/blur.h"
#include "transforms/augment/geometry/border.h"

namespace stoker {

namespace {

size_t Count(int64_t numbers) { return static_cast<size_t>(numbers); }

int TapsOf(double sigma) { return static_cast<int>(8 * sigma + 1) | 1; }

void FindWeights(double sigma, int taps, float* weights) {
  const auto exact = [&](int tap) { return GaussianWeight(tap, taps, sigma); };
  double total = 0;
  for (int t = 0; t < taps; ++t) total += exact(t);
  for (int t = 0; t < taps; ++t) weights[t] = static_cast<float>(exact(t) / total);
}

void AddTimes(float weight, const float* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] += weight * from[i];
}

// Writes uniform numbers: up to 3 more than `count`.
void DrawRow(uint64_t key, uint64_t row, size_t count, float* to) {
  for (uint32_t i = 0; i < count; i += 4) {
    const PhiloxBlock words =
        Philox4x32({i, static_cast<uint32_t>(row), 0, 0},
                   {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    for (const uint32_t word : words) *to++ = static_cast<float>(word >> 8) * 0x1p-23F - 1;
  }
}

// The parts of the memory.
struct Numbers {
  Numbers(int taps, ImageSize size, float* memory)
      : count(Count(int64_t{size.width} * size.height)),
        x(memory),
        y(x + count),
        along(y + count),
        line(along + count),
        weights(line + size.width + taps + 3),
        end(weights + taps) {}
  size_t count;
  float *x, *y;
  float* along;    // filtered along the rows
  float* line;     // a row and its surroundings
  float* weights;  // of the taps
  float* end;
};

}  // namespace

size_t DisplacementBytes(const ElasticNoise& noise, ImageSize size) {
  const int64_t taps = TapsOf(noise.sigma), pixels = int64_t{size.width} * size.height;
  return Count(3 * pixels + size.width + 2 * taps + 3) * sizeof(float);
}

Displacement MakeDisplacement(const ElasticNoise& noise, ImageSize size, uint8_t* memory) {
  const int taps = TapsOf(noise.sigma), half = taps / 2;
  const auto [width, height] = size;
  const Numbers in(taps, size, reinterpret_cast<float*>(memory));
  FindWeights(noise.sigma, taps, in.weights);
  const auto times = static_cast<float>(noise.alpha / 2);
  std::fill_n(in.x, 2 * in.count, 0.0F);
  for (const int axis : {0, 1}) {
    float* const to = axis == 0 ? in.x : in.y;
    std::fill_n(in.along, in.count, 0.0F);
    for (int y = 0; y < height; ++y) {
      float* const row = in.line + half;
      DrawRow(noise.key, uint64_t{2} * static_cast<uint64_t>(y) + static_cast<uint64_t>(axis),
              Count(width), row);
      for (int i = 1; i <= half; ++i) {
        row[-i] = row[Reflected(-i, width)];
        row[width - 1 + i] = row[Reflected(width - 1 + i, width)];
      }
      for (int t = 0; t < taps; ++t) {
        AddTimes(in.weights[t], in.line + t, Count(width), in.along + int64_t{y} * width);
      }
    }
    for (int y = 0; y < height; ++y) {
      for (int t = 0; t < taps; ++t) {
        AddTimes(in.weights[t] * times, in.along + Reflected(y + t - half, height) * width,
                 Count(width), to + int64_t{y} * width);
      }
    }
  }
  return {in.x, in.y};
}

Result<Displacement> Displacements::Get(const ElasticNoise& noise, ImageSize size) {
  for (const Made& made : made_) {
    if (made.size == size && made.noise == noise) return made.displacement;
  }
  Made& made = made_[next_];
  made.size = {};
  TRY(made.memory.Grow(DisplacementBytes(noise, size)));
  made.displacement = MakeDisplacement(noise, size, made.memory.data());
  made.noise = noise;
  made.size = size;
  next_ = 1 - next_;
  return made.displacement;
}

}  // namespace stoker
