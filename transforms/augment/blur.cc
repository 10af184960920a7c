#include "transforms/augment/blur.h"

#include <algorithm>

#include "transforms/augment/border.h"
#include "transforms/augment/weighted_sums.h"

namespace stoker {

namespace {

constexpr size_t kAligned = 16;  // floats of a cache line

constexpr size_t Aligned(size_t floats) { return (floats + kAligned - 1) / kAligned * kAligned; }

// How the scratch memory is divided. All in floats but the last.
struct Room {
  Room(const Blur& blur, ImageSize size)
      : places(std::min(blur.taps.height, size.height)),
        row(Aligned(static_cast<size_t>(size.width) + kSumsOvershoot)),
        line(row + Aligned(static_cast<size_t>(blur.taps.width)) + kAligned),
        along(Aligned(static_cast<size_t>(blur.taps.width))),
        down(Aligned(static_cast<size_t>(blur.taps.height))),
        pointers(static_cast<size_t>(blur.taps.height)) {}
  size_t bytes() const {
    return (static_cast<size_t>(places) * row + line + along + down) * sizeof(float) +
           pointers * sizeof(float*);
  }
  int places;       // rows that the taps of one output row reach
  size_t row;       // one of them
  size_t line;      // a row summed down, with what the taps along it reach beyond its ends
  size_t along;     // weights
  size_t down;      // weights
  size_t pointers;  // a row for each tap
};

// A Gaussian without the zeros at its ends.
struct Kernel {
  Kernel(int all_taps, double sigma, float* room)
      : weights(room), taps(static_cast<size_t>(all_taps)) {
    GaussianWeights(all_taps, sigma, room);
    for (; taps > 1 && *weights == 0; taps -= 2) ++weights;
  }
  int middle() const { return static_cast<int>(taps / 2); }
  const float* weights;
  size_t taps;
};

// The values that taps reach before and behind `count` ones.
void ReflectEnds(int reach, int count, float* first) {
  for (int i = 1; i <= reach; ++i) {
    first[-i] = first[Reflected(-i, count)];
    first[count - 1 + i] = first[Reflected(int64_t{count} - 1 + i, count)];
  }
}

}  // namespace

size_t BlurScratchBytes(const Blur& blur, ImageSize size) { return Room(blur, size).bytes(); }

// Row after row: the rows that the taps reach are there as floats, each in a place of its own until
// one that far below takes it.
void Blurred(const Tile& from, const Blur& blur, uint8_t* scratch, const Tile& to) {
  const Room room(blur, from.size);
  auto* const rows = reinterpret_cast<float*>(scratch);
  float* const line = rows + static_cast<size_t>(room.places) * room.row;
  const Kernel along(blur.taps.width, blur.sigma_x, line + room.line);
  const Kernel down(blur.taps.height, blur.sigma_y, line + room.line + room.along);
  auto* const taps = reinterpret_cast<const float**>(line + room.line + room.along + room.down);
  float* const first = line + Aligned(static_cast<size_t>(along.middle()));
  const auto place = [&](int64_t y) {
    return rows + static_cast<size_t>(y % room.places) * room.row;
  };
  const auto [width, height] = from.size;
  const auto count = static_cast<size_t>(width);
  for (size_t c = 0; c < 3; ++c) {
    int next = 0;  // the first row that is not yet floats
    for (int y = 0; y < height; ++y) {
      const int last = std::min(y + down.middle(), height - 1);
      for (; next <= last; ++next) ToFloats(from.row(c, next), count, place(next));
      for (size_t t = 0; t < down.taps; ++t) {
        taps[t] = place(Reflected(y + static_cast<int64_t>(t) - down.middle(), height));
      }
      SumDown(down.weights, taps, down.taps, count, first);
      ReflectEnds(along.middle(), width, first);
      SumAlong(along.weights, first - along.middle(), along.taps, count, to.row(c, y));
    }
  }
}

}  // namespace stoker
