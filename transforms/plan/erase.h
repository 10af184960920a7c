// RandomErasing's last part: a box of a finished row is overwritten.
#pragma once

#include "transforms/plan/drawn.h"
#include "transforms/resize/row_format.h"

namespace stoker {

// `row`: a finished image in this format. Writes the box and nothing else. Noise is the same
// numbers in every layout, rounded to the format's type; precondition: none for u8, whose values
// are within 0…255 (a fraction is dropped).
void Erase(const Erasure& erasure, const RowFormat& format, uint8_t* row);

}  // namespace stoker
