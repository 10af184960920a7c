// binary32 to the two 16-bit types, rounded to the nearest value and ties to even: what NumPy's
// astype("float16") and ml_dtypes' bfloat16 give. Values too large become infinite. And back, which
// is exact. Of NaN only the quiet one without further bits is the same in all types.
#pragma once

#include <cstdint>

namespace stoker {

uint16_t Float16Bits(float value);   // IEEE 754 binary16, with subnormal numbers
uint16_t BFloat16Bits(float value);  // the upper half of a binary32

float Float16Value(uint16_t bits);
float BFloat16Value(uint16_t bits);

}  // namespace stoker
