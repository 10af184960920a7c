// Conversion from binary32 to the two 16-bit types, rounded to the nearest value, ties to even, as
// NumPy's astype("float16") and ml_dtypes' bfloat16 do. Values too large become infinite. The
// conversion back is exact. Of NaNs, only the quiet one without payload is the same in all types.
#pragma once

#include <cstdint>

namespace stoker {

uint16_t Float16Bits(float value);   // IEEE 754 binary16, with subnormal numbers
uint16_t BFloat16Bits(float value);  // the upper half of a binary32

float Float16Value(uint16_t bits);
float BFloat16Value(uint16_t bits);

}  // namespace stoker
