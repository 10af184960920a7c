// RandomErasing's last part: a box of a finished row is overwritten.
#pragma once

#include "transforms/drawn.h"
#include "transforms/resize/row_format.h"

namespace stoker {

// `row`: a finished image in this format. Writes the box and nothing else. Noise is the same
// numbers in every layout, rounded to the format's type; precondition: none for u8, whose values
// are within 0…255 (a fraction is dropped).
void Erase(const Erasure& erasure, const RowFormat& format, uint8_t* row);

// The normal number (mean 0, deviation 1) below which a share of u lies; 2^-34 <= u <= 1 - 2^-34.
// Relative error below 1e-14. (Wichura: "Algorithm AS 241: The percentage points of the normal
// distribution", Applied Statistics 37, 1988)
double NormalQuantile(double u);

}  // namespace stoker
