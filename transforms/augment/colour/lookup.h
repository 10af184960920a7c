// Applies tables of values, and computes the statistics that some tables are made from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/augment/colour/tables.h"

namespace stoker {

// Replaces each of `count` values by table[value].
void LookUp(const ValueTable& table, uint8_t* values, size_t count);
// Returns the range of all values; ValueRange() if there are none.
ValueRange FindRange(const uint8_t* values, size_t count);
Histogram CountValues(const uint8_t* values, size_t count);  // below 2^32 values

// The references.
void LookUpPlain(const ValueTable& table, uint8_t* values, size_t count);
ValueRange FindRangePlain(const uint8_t* values, size_t count);
Histogram CountValuesPlain(const uint8_t* values, size_t count);

}  // namespace stoker
