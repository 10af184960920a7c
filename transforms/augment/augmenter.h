// Augmenter: the tile that a worker keeps, and the steps that are done on it.
//
// What cannot be fused with resizing is done here: on one small image of a batch row's size, which
// stays in a core's cache from the resampler's writing to the last step's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/image.h"
#include "engine/core/memory_budget.h"
#include "engine/core/result.h"
#include "transforms/augment/step.h"

namespace stoker {

// Three planes behind each other, rows without gaps: kPlanar in NCHW. kTileOverread bytes behind
// the last plane may be read and written.
struct Tile {
  uint8_t* pixels = nullptr;
  ImageSize size;
  size_t plane_bytes() const {
    return static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  }
  uint8_t* plane(size_t c) const { return pixels + c * plane_bytes(); }
};
inline constexpr size_t kTileOverread = 64;

// Reused from image to image: nothing is allocated once it has seen the largest. Memory is charged
// to `budget`, which outlives it. One thread at a time.
class Augmenter {
 public:
  explicit Augmenter(MemoryBudget& budget);

  // A tile to write an image to; its pixels are unspecified. ResourceExhausted without room.
  Status Start(ImageSize size);
  const Tile& tile() const { return tile_; }

  // Does the step; tile() may be another one afterwards, of another size after a Reframe.
  // ResourceExhausted without room. Precondition: the step's parameters are in their ranges.
  Status Apply(const Step& step);

 private:
  Tile tile_;
};

// The plain twin, in std::vector and one scalar loop after the other: same bytes.
// `pixels`: as a Tile's, and replaced.
void ApplyStepPlain(const Step& step, ImageSize& size, std::vector<uint8_t>& pixels);

}  // namespace stoker
