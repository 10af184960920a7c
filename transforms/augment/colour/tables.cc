#include "transforms/augment/colour/tables.h"

#include <algorithm>

#include "transforms/augment/colour/blend.h"

namespace stoker {

namespace {

template <typename NewValue>
ValueTable MakeTable(NewValue new_value) {
  ValueTable table;
  for (size_t v = 0; v < table.size(); ++v) table[v] = new_value(static_cast<int>(v));
  return table;
}

}  // namespace

ValueTable TableOf(const AdjustBrightness& step) {
  return MakeTable([&](int v) { return CutToByte(static_cast<float>(v) * step.factor); });
}

ValueTable ContrastTable(double factor, float mean) {
  const BlendWeights blend(factor);
  return MakeTable([&](int v) { return blend(static_cast<float>(v), mean); });
}

ValueTable TableOf(const Posterize& step) {
  const int mask = 0xff00 >> step.bits;
  return MakeTable([=](int v) { return static_cast<uint8_t>(v & mask); });
}

ValueTable TableOf(const Solarize& step) {
  return MakeTable([&](int v) {
    return static_cast<uint8_t>(static_cast<float>(v) >= step.threshold ? 255 - v : v);
  });
}

ValueTable TableOf(const Invert& /*step*/) {
  return MakeTable([](int v) { return static_cast<uint8_t>(255 - v); });
}

ValueTable AutoContrastTable(ValueRange range) {
  const bool flat = range.least == range.most;
  const auto least = static_cast<float>(flat ? 0 : range.least);
  const float scale = flat ? 1 : static_cast<float>(range.most - range.least) * (1 / 255.0F);
  return MakeTable([=](int v) { return CutToByte((static_cast<float>(v) - least) / scale); });
}

// Like Pillow, counts the pixels below a value, in steps of 1/255 of all pixels except those of the
// largest value.
ValueTable EqualizeTable(const Histogram& histogram) {
  uint64_t pixels = 0, of_largest = 0;
  for (const uint32_t count : histogram) {
    pixels += count;
    if (count != 0) of_largest = count;
  }
  const uint64_t step = (pixels - of_largest) / 255;
  uint64_t below = step / 2;
  return MakeTable([&](int v) {
    if (step == 0) return static_cast<uint8_t>(v);
    const auto value = static_cast<uint8_t>(std::min<uint64_t>(below / step, 255));
    below += histogram[static_cast<size_t>(v)];
    return value;
  });
}

}  // namespace stoker
