// The pixel part of RandomErasing: overwrites a box of a finished batch row.
#pragma once

#include "transforms/plan/drawn.h"
#include "transforms/resize/row_format.h"

namespace stoker {

// `row`: a finished image in this format. Writes only the box. Noise is the same in every layout,
// rounded to the format's type. Precondition: no noise for u8, whose values are within 0…255 (a
// fraction is dropped).
void Erase(const Erasure& erasure, const RowFormat& format, uint8_t* row);

}  // namespace stoker
