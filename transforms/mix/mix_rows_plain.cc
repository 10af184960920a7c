#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/batch/image.h"
#include "core/numbers/half.h"
#include "transforms/mix/draw_mix.h"
#include "transforms/mix/mix_rows.h"

namespace stoker {

namespace {

float Load(DType dtype, const uint8_t* from) {
  if (dtype == DType::kU8) return *from;
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return dtype == DType::kF16 ? Float16Value(bits) : BFloat16Value(bits);
}

void Store(DType dtype, float value, uint8_t* to) {
  if (dtype == DType::kU8) {
    *to = static_cast<uint8_t>(std::nearbyint(value));
    return;
  }
  if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  if (dtype == DType::kF32) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  const uint16_t bits = dtype == DType::kF16 ? Float16Bits(value) : BFloat16Bits(value);
  std::memcpy(to, &bits, sizeof(bits));
}

}  // namespace

void MixRowsPlain(const DrawnMix& mix, const MixedRow& row, size_t rows, void* data) {
  const size_t bytes = row.bytes(), size = SizeOf(row.dtype);
  auto* const out = static_cast<uint8_t*>(data);
  const std::vector<uint8_t> in(out, out + rows * bytes);
  const auto own = static_cast<float>(mix.lam), others = static_cast<float>(1 - mix.lam);
  for (size_t i = 0; i < rows; ++i) {
    const uint8_t* self = in.data() + i * bytes;
    const uint8_t* before = in.data() + (i + rows - 1) % rows * bytes;
    for (size_t v = 0; v < row.count(); ++v) {
      uint8_t* const to = out + i * bytes + v * size;
      if (!mix.cut) {
        const float weighted = Load(row.dtype, self + v * size) * own;
        const float weighted_before = Load(row.dtype, before + v * size) * others;
        Store(row.dtype, weighted + weighted_before, to);
        continue;
      }
      const auto x = static_cast<int>(v / row.values % row.width);
      const auto y = static_cast<int>(v / row.values / row.width % row.height);
      const Rect& box = mix.box;
      if (x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height) {
        std::memcpy(to, before + v * size, size);
      }
    }
  }
}

}  // namespace stoker
