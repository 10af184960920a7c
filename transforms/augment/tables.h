// Steps for which a channel's new value depends on its old one alone are a table of 256 values for
// each channel; lookup.h does the rest. Formulas are torchvision's, in binary32 or integers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transforms/augment/step.h"

namespace stoker {

using ValueTable = std::array<uint8_t, 256>;
using Histogram = std::array<uint32_t, 256>;  // how often each value is in a plane

struct ValueRange {
  uint8_t least = 255;
  uint8_t most = 0;
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

// Of steps that look at nothing but the value; they need no more than this.
ValueTable TableOf(const AdjustBrightness& step);
ValueTable TableOf(const Posterize& step);
ValueTable TableOf(const Solarize& step);
ValueTable TableOf(const Invert& step);

template <typename One>
concept HasTable = requires(One step) {
  TableOf(step);
};

// Of steps that look at the image first.
ValueTable ContrastTable(double factor, float mean);   // mean: of gray
ValueTable AutoContrastTable(ValueRange range);        // of a channel with at least one pixel
ValueTable EqualizeTable(const Histogram& histogram);  // likewise

}  // namespace stoker
