// What tables of values need: looking up, and the numbers that some tables are made from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/augment/tables.h"

namespace stoker {

// Each of `count` values becomes table[value].
void LookUp(const ValueTable& table, uint8_t* values, size_t count);
// Of all values; of none: ValueRange().
ValueRange FindRange(const uint8_t* values, size_t count);
Histogram CountValues(const uint8_t* values, size_t count);  // below 2^32 values

// The plain twins.
void LookUpPlain(const ValueTable& table, uint8_t* values, size_t count);
ValueRange FindRangePlain(const uint8_t* values, size_t count);
Histogram CountValuesPlain(const uint8_t* values, size_t count);

}  // namespace stoker
