// Steps in which a channel's new value depends only on its old one are tables of 256 values per
// channel, applied by lookup.h. The formulas are torchvision's, in binary32 or integers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transforms/augment/step.h"

namespace stoker {

using ValueTable = std::array<uint8_t, 256>;
using Histogram = std::array<uint32_t, 256>;  // how often each value occurs in a plane

struct ValueRange {
  uint8_t least = 255;
  uint8_t most = 0;
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

// Tables of steps that depend on nothing but the value.
ValueTable TableOf(const AdjustBrightness& step);
ValueTable TableOf(const Posterize& step);
ValueTable TableOf(const Solarize& step);
ValueTable TableOf(const Invert& step);

template <typename One>
concept HasTable = requires(One step) {
  TableOf(step);
};

// Tables of steps that depend on the image.
ValueTable ContrastTable(double factor, float mean);   // mean: of gray
ValueTable AutoContrastTable(ValueRange range);        // range of a channel with at least one pixel
ValueTable EqualizeTable(const Histogram& histogram);  // likewise

}  // namespace stoker
