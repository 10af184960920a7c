// Augmenter: executes steps on a worker's tile.
//
// Executes the steps that cannot be fused with resizing, on one small image of the size of a
// batch's row, which stays in a core's cache from the resampler's writes to the last step's.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/augment/geometry/elastic.h"
#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// Reused from image to image: nothing is allocated after the largest image. Memory is charged to
// `budget`, which must outlive it, as must `displacements`: without them no step may have noise.
// Not thread-safe.
class Augmenter {
 public:
  explicit Augmenter(MemoryBudget& budget, Displacements* displacements = nullptr);

  // Returns the bytes that a Mix needs in addition to those of its steps.
  static uint64_t MixBytes(ImageSize size);

  // Creates a tile to write an image to, or a mask with one channel; its pixels are unspecified. On
  // ResourceExhausted there is no tile.
  Status Start(ImageSize size, size_t channels = 3);
  const Tile& tile() const { return tile_; }

  // Executes the step; afterwards tile() may return another tile, with another size after a
  // Reframe or an Affine. ResourceExhausted if the budget has no room. Precondition: the step's
  // parameters are in range, and the tile has the channels that it needs.
  Status Apply(const Step& step);

 private:
  // Calls write(Tile) to produce an image of that size in the other buffer, which then becomes the
  // tile's.
  template <typename Write>
  Status ReplaceTile(ImageSize size, Write write);

  Status Do(const AdjustSharpness& step);
  Status Do(const Blur& step);
  Status Do(const Affine& step);
  Status Do(const Reframe& step);
  Status Do(const Mirror& step);
  Status Do(const Paste& step);
  Status Do(const Mix& step);
  template <typename InPlace>
  Status Do(const InPlace& step);

  Displacements* displacements_;
  Tile tile_;
  GrowingBuffer current_;  // tile_'s pixels
  GrowingBuffer other_;    // empty until a step needs it
  GrowingBuffer scratch_;  // of one step
  GrowingBuffer mixed_;    // a Mix's sums, and the image before its chains
};

// The reference, with std::vector and consecutive scalar loops: writes the same bytes. Replaces
// `pixels`, which are laid out as in a Tile.
void ApplyStepPlain(const Step& step, ImageSize& size, std::vector<uint8_t>& pixels);

}  // namespace stoker
