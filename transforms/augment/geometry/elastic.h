// The smooth noise of ElasticTransform. (Simard, Steinkraus, Platt: "Best Practices for
// Convolutional Neural Networks Applied to Visual Document Analysis", ICDAR 2003)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/augment/step.h"

namespace stoker {

// How far from each output pixel of an image its source position is, in pixels: rows without gaps,
// along x and along y. Of the memory that it was made in.
struct Displacement {
  const float* x = nullptr;
  const float* y = nullptr;
};

// Returns the bytes of memory that MakeDisplacement needs.
size_t DisplacementBytes(const ElasticNoise& noise, ImageSize size);

// The distribution is that of torchvision's ElasticTransform: numbers uniform in [−1, 1), blurred
// by int(8 sigma + 1) taps (one more if that is even) of a Gaussian, with reflected borders, times
// alpha / 2. The same on every machine. `memory`: DisplacementBytes, aligned like a
// GrowingBuffer's; as many bytes as a vector has may be read beyond the numbers of x and y.
Displacement MakeDisplacement(const ElasticNoise& noise, ImageSize size, uint8_t* memory);

// The displacements of the two images that a worker interleaves: an image, its masks and its
// objects share one. Not thread-safe.
class Displacements {
 public:
  explicit Displacements(MemoryBudget& budget) : made_{Made(budget), Made(budget)} {}

  // Makes it, unless it is one of the last two. The result is valid until the next but one is made.
  // ResourceExhausted if the budget has no room.
  Result<Displacement> Get(const ElasticNoise& noise, ImageSize size);

 private:
  struct Made {
    explicit Made(MemoryBudget& budget) : memory(budget) {}
    GrowingBuffer memory;
    ElasticNoise noise;
    ImageSize size;  // 0 × 0: none is made
    Displacement displacement;
  };
  std::array<Made, 2> made_;
  size_t next_ = 0;  // is replaced
};

}  // namespace stoker
