#include "transforms/processor/patches.h"

#include <cstddef>
#include <cstring>

#include "core/numbers/half.h"

namespace stoker {

namespace {

float ValueOf(const ProcessorRecipe& recipe, size_t channel, int byte) {
  auto value = static_cast<float>(byte);
  if (recipe.resampler == ResampledAs::kTorchvision) {  // one step, by torch
    const Normalisation by = NormalisationOf(recipe);
    if (recipe.normalizes) return (value - by.mean[channel]) / by.deviation[channel];
    return recipe.rescales ? value * static_cast<float>(recipe.factor) : value;
  }
  if (recipe.rescales) value = static_cast<float>(byte * recipe.factor);  // two, by NumPy
  if (!recipe.normalizes) return value;
  const auto mean = static_cast<float>(recipe.mean[channel]);
  return (value - mean) / static_cast<float>(recipe.deviation[channel]);
}

// Writes `count` values of a channel that lie `step` values apart. Without a table they are bytes.
template <typename T>
void Put(const uint8_t* from, int count, int step, const T* table, uint8_t* to) {
  for (int i = 0; i < count; ++i, from += step, to += static_cast<size_t>(step) * sizeof(T)) {
    std::memcpy(to, &table[*from], sizeof(T));
  }
}
void Put(const uint8_t* from, int count, int step, std::nullptr_t, uint8_t* to) {
  if (step == 1) {
    std::memcpy(to, from, static_cast<size_t>(count));
  } else {
    for (int i = 0; i < count; ++i) to[i * step] = from[i * step];
  }
}

// `table(c)` is that of channel c. A value takes `bytes`.
template <typename Table>
void Write(const uint8_t* canvas, ImageSize size, ImageSize patch, const ProcessorRecipe& recipe,
           const Table& table, size_t bytes, uint8_t* to) {
  const size_t row = static_cast<size_t>(patch.width) * bytes;
  const size_t plane = row * static_cast<size_t>(patch.height);
  const auto write_one = [&](int x, int y) {
    if (recipe.interleaved()) {
      const uint8_t* from = canvas + (ptrdiff_t{y} * size.width + x) * 3;
      for (int i = 0; i < patch.height; ++i, from += ptrdiff_t{3} * size.width, to += 3 * row) {
        for (size_t c = 0; c < 3; ++c) Put(from + c, patch.width, 3, table(c), to + c * bytes);
      }
      return;
    }
    for (size_t c = 0; c < 3; ++c) {
      const uint8_t* from = canvas + (static_cast<ptrdiff_t>(c) * size.height + y) * size.width + x;
      uint8_t* const first = to;
      for (int i = 0; i < patch.height; ++i, from += size.width, to += row) {
        Put(from, patch.width, 1, table(c), to);
      }
      for (int copy = 1; copy < recipe.temporal; ++copy, to += plane) {
        std::memcpy(to, first, plane);
      }
    }
  };
  const int merge = recipe.merge, height = merge * patch.height, width = merge * patch.width;
  for (int y = 0; y < size.height; y += height) {
    for (int x = 0; x < size.width; x += width) {
      for (int i = 0; i < merge * merge; ++i) {
        write_one(x + i % merge * patch.width, y + i / merge * patch.height);
      }
    }
  }
}

}  // namespace

PatchValues::PatchValues(const ProcessorRecipe& recipe, DType of) : dtype(of) {
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < 256; ++i) {
      const float value = singles[c][i] = ValueOf(recipe, c, static_cast<int>(i));
      halves[c][i] = of == DType::kBF16 ? BFloat16Bits(value) : Float16Bits(value);
    }
  }
}

void WritePatches(const uint8_t* canvas, ImageSize size, ImageSize patch,
                  const ProcessorRecipe& recipe, const PatchValues& values, uint8_t* rows) {
  const auto write = [&](const auto& table) {
    Write(canvas, size, patch, recipe, table, SizeOf(values.dtype), rows);
  };
  if (values.dtype == DType::kU8) return write([](size_t) { return nullptr; });
  if (values.dtype == DType::kF32) {
    return write([&](size_t c) { return values.singles[c].data(); });
  }
  write([&](size_t c) { return values.halves[c].data(); });
}

}  // namespace stoker
