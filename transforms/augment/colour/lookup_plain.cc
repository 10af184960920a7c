#include <algorithm>

#include "transforms/augment/colour/lookup.h"

namespace stoker {

void LookUpPlain(const ValueTable& table, uint8_t* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = table[values[i]];
}

ValueRange FindRangePlain(const uint8_t* values, size_t count) {
  ValueRange range;
  for (size_t i = 0; i < count; ++i) {
    range.least = std::min(range.least, values[i]);
    range.most = std::max(range.most, values[i]);
  }
  return range;
}

Histogram CountValuesPlain(const uint8_t* values, size_t count) {
  Histogram histogram{};
  for (size_t i = 0; i < count; ++i) ++histogram[values[i]];
  return histogram;
}

}  // namespace stoker
