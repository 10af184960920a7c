// Affine: where each output pixel comes from, and what is there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/result.h"
#include "transforms/augment/step.h"
#include "transforms/augment/tile.h"

namespace stoker {

// Positions in the source, in pixels from the middle of its first pixel, in binary32: of output
// (x, y), step_x × (x − (width − 1) / 2) + Start(y), and likewise down.
struct AffineSource {
  AffineSource(const std::array<double, 6>& matrix, ImageSize size);
  float StartX(int y) const;
  float StartY(int y) const;

  float step_x, step_y;
  float first_column;  // −(width − 1) / 2

 private:
  double down_x_, down_y_, middle_x_, middle_y_;
  double first_row_;
};

// Bytes that Mapped needs beside the images. ResourceExhausted where indices would overflow.
Result<size_t> AffineScratchBytes(ImageSize size);

// kNearest: the pixel nearest to the position, ties to even. kBilinear: between the four around it.
// `to`: of the same size, elsewhere. `scratch`: that many bytes, aligned as a GrowingBuffer's.
void Mapped(const Tile& from, const Affine& affine, uint8_t* scratch, const Tile& to);
void MappedPlain(const Tile& from, const Affine& affine, const Tile& to);  // the plain twin

}  // namespace stoker
