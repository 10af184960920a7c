#include "transforms/plan/row/erase.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/numbers/half.h"
#include "core/numbers/normal.h"

namespace stoker {

namespace {

// Generates the numbers of a key in the order of NormalNumber, a block of four at a time.
class Noise {
 public:
  explicit Noise(uint64_t key) : key_(key) {}

  float Next() {
    if (next_ % 4 == 0) block_ = NormalBlock(key_, next_ / 4);
    return NormalOf(block_[next_++ % 4], [](double x) { return std::sqrt(x); });
  }

 private:
  uint64_t key_;
  PhiloxBlock block_{};
  uint64_t next_ = 0;
};

// Calls store(index, value) for every value of the box, channel by channel and pixel row by pixel
// row.
template <typename Value, typename Store>
void ForEach(const Rect& box, const RowFormat& format, uint8_t* row, const Value& value,
             const Store& store) {
  for (int c = 0; c < format.channels; ++c) {
    for (int y = box.y; y < box.y + box.height; ++y) {
      uint8_t* at = row + c * format.channel + y * format.down + box.x * format.along;
      for (int x = 0; x < box.width; ++x, at += format.along) store(at, value(c));
    }
  }
}

template <typename Value>
void FillBox(const Rect& box, const RowFormat& format, uint8_t* row, const Value& value) {
  const auto put = [](uint8_t* at, auto bits) { std::memcpy(at, &bits, sizeof(bits)); };
  switch (format.dtype) {
    case DType::kF32:
      return ForEach(box, format, row, value, put);
    case DType::kF16:
      return ForEach(box, format, row, value,
                     [&](uint8_t* at, float v) { put(at, Float16Bits(v)); });
    case DType::kBF16:
      return ForEach(box, format, row, value,
                     [&](uint8_t* at, float v) { put(at, BFloat16Bits(v)); });
    default:
      return ForEach(box, format, row, value,
                     [](uint8_t* at, float v) { *at = static_cast<uint8_t>(v); });
  }
}

}  // namespace

void Erase(const Erasure& erasure, const RowFormat& format, uint8_t* row) {
  if (!erasure.noise) {
    return FillBox(erasure.box, format, row,
                   [&](int c) { return erasure.value[static_cast<size_t>(c)]; });
  }
  Noise noise(*erasure.noise);
  FillBox(erasure.box, format, row, [&](int) { return noise.Next(); });
}

}  // namespace stoker
