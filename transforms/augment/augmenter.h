// Augmenter: the tile that a worker keeps, and the steps that are done on it.
//
// What cannot be fused with resizing is done here: on one small image of a batch row's size, which
// stays in a core's cache from the resampler's writing to the last step's.
#pragma once

#include <cstdint>
#include <vector>

#include "core/buffer.h"
#include "core/image.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// Reused from image to image: nothing is allocated once it has seen the largest. Memory is charged
// to `budget`, which outlives it. One thread at a time.
class Augmenter {
 public:
  explicit Augmenter(MemoryBudget& budget);

  // A tile to write an image to; its pixels are unspecified. ResourceExhausted without room, and
  // then there is no tile.
  Status Start(ImageSize size);
  const Tile& tile() const { return tile_; }

  // Does the step; tile() may be another one afterwards, of another size after a Reframe.
  // ResourceExhausted without room. Precondition: the step's parameters are in their ranges.
  Status Apply(const Step& step);

 private:
  // Lets write(Tile) make an image of that size in the other buffer, which is then the tile's.
  template <typename Write>
  Status Into(ImageSize size, Write write);

  Status Do(const AdjustSharpness& step);
  Status Do(const Blur& step);
  Status Do(const Affine& step);
  Status Do(const Reframe& step);
  Status Do(const Mirror& step);
  template <typename InPlace>
  Status Do(const InPlace& step);

  Tile tile_;
  GrowingBuffer current_;  // tile_'s pixels
  GrowingBuffer other_;    // empty until a step needs it
  GrowingBuffer scratch_;  // of one step
};

// The plain twin, in std::vector and one scalar loop after the other: same bytes.
// `pixels`: as a Tile's, and replaced.
void ApplyStepPlain(const Step& step, ImageSize& size, std::vector<uint8_t>& pixels);

}  // namespace stoker
