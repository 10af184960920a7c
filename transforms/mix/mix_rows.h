// Mixes batch rows in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/batch/dtype.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/mix/draw_mix.h"

namespace stoker {

// The shape of a batch row for mixing: consecutive planes of pixel rows without gaps. All sizes are
// at least 1.
struct MixedRow {
  DType dtype = DType::kU8;  // u8, f16, bf16 or f32
  size_t planes = 1;
  size_t height = 1;
  size_t width = 1;
  size_t values = 1;  // interleaved values per pixel

  size_t count() const { return planes * height * width * values; }
  size_t bytes() const { return count() * SizeOf(dtype); }
};

// `data`: `rows` batch rows without gaps, at any alignment valid for the type. Blending is value ×
// lam + previous value × (1 − lam) in binary32: both weights are rounded to it first, and then each
// operation. For u8 the result is rounded half to even; for f16 and bf16 it is rounded once more
// (half.h). NaN becomes the same quiet NaN on every machine. A box is copied bit by bit.
// Precondition: it lies inside the batch row.
void MixRows(const DrawnMix& mix, const MixedRow& row, size_t rows, void* data);

// The reference: same bytes.
void MixRowsPlain(const DrawnMix& mix, const MixedRow& row, size_t rows, void* data);

}  // namespace stoker
