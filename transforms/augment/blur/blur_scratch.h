// BlurScratch: the layout of the scratch memory of a blur.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/augment/step.h"

namespace stoker {

// Values that vectors read and write after the last one.
inline constexpr size_t kBlurOvershoot = 64;

// Every part begins at a cache line.
struct BlurScratch {
  // `scratch`: BlurScratchBytes, or null to learn only the sizes.
  BlurScratch(const Blur& blur, ImageSize size, uint8_t* scratch);

  int ring_rows;         // pairs of rows that the taps of one output row reach
  size_t pair_row;       // int32s of one of them
  int32_t* pair_rows;    // each value with the one below it
  const int32_t** taps;  // a pair of rows for each two taps
  int16_t* line;         // a vertically filtered row, extended for the horizontal taps
  int16_t* along;        // weights, one more than taps
  int16_t* down;         // weights, one more than taps
  size_t bytes;
};

// A Gaussian kernel without the zeros at its ends.
struct BlurKernel {
  BlurKernel(int all_taps, double sigma, int16_t* room);
  int middle() const { return taps / 2; }
  size_t pairs() const { return static_cast<size_t>(taps + 1) / 2; }  // the last has a zero
  const int16_t* weights;
  int taps;
  int shift;  // the weights' sum is 1 << shift
};

}  // namespace stoker
