// The rows of a batch are mixed, in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "transforms/mix/batch_mix.h"

namespace stoker {

// What one row of a column is, as far as mixing is concerned: planes behind each other, rows of
// pixels without gaps. All of them at least 1.
struct MixedRow {
  DType dtype = DType::kU8;  // u8, f16, bf16 or f32
  size_t planes = 1;
  size_t height = 1;
  size_t width = 1;
  size_t values = 1;  // of a pixel, which are neighbours

  size_t count() const { return planes * height * width * values; }
  size_t bytes() const { return count() * SizeOf(dtype); }
};

// `rows` rows without gaps at `data`, of any alignment for the type. Blending is value × lam +
// value before × (1 − lam) in binary32: both weights rounded to it first, and each operation. Of u8
// the result is rounded half to even; of f16 and bf16 once more (half.h). What is no number becomes
// the same quiet NaN on every machine. A box is copied bit by bit. Precondition: it lies in the
// row.
void MixRows(const DrawnMix& mix, const MixedRow& row, size_t rows, void* data);

// The plain twin: same bytes.
void MixRowsPlain(const DrawnMix& mix, const MixedRow& row, size_t rows, void* data);

}  // namespace stoker
