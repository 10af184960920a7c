// Affine: maps each output pixel to its source position, and samples the source there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/result/result.h"
#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

struct Displacement;

// Positions in the source, in pixels from the center of its first pixel, in binary32: for output
// (x, y), step_x × (x − (width − 1) / 2) + Start(y), and likewise vertically. Of a projective map
// both are divided by a likewise number, or by kLeastDivisor if that is 0.
struct AffineSource {
  AffineSource(const Affine& affine, ImageSize from, ImageSize to);
  float StartX(int y) const;
  float StartY(int y) const;
  float StartDivisor(int y) const;

  float step_x, step_y, step_divisor;
  float first_column;  // −(width − 1) / 2, of the output
  bool is_projective;
  static constexpr float kLeastDivisor = 1e-30F;

 private:
  double down_x_, down_y_, down_divisor_, middle_x_, middle_y_;
  double first_row_;
};

// Folds positions outside the image back into it along one axis, like Padding for indices, so that
// four reads suffice for each position.
struct AffineAxis {
  AffineAxis(Padding padding, int size);

  float low, high;   // the sampled positions; kConstant samples the fill at −1 and at `size`
  float period = 0;  // after which the pixels repeat; 0 if they do not
  float start = 0;   // of a period
  bool is_mirrored = false;  // the second half of a period is the first one, mirrored
};

// Returns the bytes of scratch memory that MapTo needs. ResourceExhausted if indices would
// overflow.
Result<size_t> AffineScratchBytes(ImageSize size);

// Samples the source. kNearest takes the pixel nearest to the position, ties to even; kBilinear
// interpolates between the four pixels around it. `to` has the same channels, and must not
// overlap; one channel is for kNearest only. `moved`: that of the step's noise, if it has any.
// `scratch`: AffineScratchBytes bytes, aligned like a GrowingBuffer's.
void MapTo(const Tile& from, const Affine& affine, const Displacement& moved, uint8_t* scratch,
           const Tile& to);
void MapPlain(const Tile& from, const Affine& affine, const Tile& to);  // the reference

}  // namespace stoker
