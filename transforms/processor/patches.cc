// Compiled once for each instruction set.
#include "transforms/processor/patches.h"

#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/numbers/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/processor/patches.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/resize/strip/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The functors below write a run: `count` adjacent values of a channel, or those of all three
// channels, interleaved. Each writes all of them to `to` as its type, and nothing else.

// Looks values up.
template <typename T>
struct Looked {
  const std::array<std::array<T, 256>, 3>& table;
  bool interleaved;

  static constexpr size_t kBytes = sizeof(T);
  void operator()(const uint8_t* from, int count, size_t channel, uint8_t* to) const {
    for (int i = 0; i < count; ++i, to += sizeof(T)) {
      const size_t c = interleaved ? static_cast<size_t>(i) % 3 : channel;
      std::memcpy(to, &table[c][from[i]], sizeof(T));
    }
  }
};

// Writes whole pieces of `lanes` values with `piece(first)`; the last one overlaps the one before
// it. Precondition: count >= lanes.
template <class Piece>
HWY_INLINE void InPieces(int count, int lanes, const Piece& piece) {
  for (int i = 0; i + lanes < count; i += lanes) piece(i);
  piece(count - lanes);
}

struct Copied {
  static constexpr size_t kBytes = 1;
  static constexpr int kLanes = 8, kMostPieces = 8;
  HWY_INLINE void operator()(const uint8_t* from, int count, size_t /*channel*/,
                             uint8_t* to) const {
    if (count < kLanes || count > kMostPieces * kLanes) {
      std::memcpy(to, from, static_cast<size_t>(count));
    } else {
      InPieces(count, kLanes, [&](int i) { std::memcpy(to + i, from + i, kLanes); });
    }
  }
};

#if HWY_TARGET != HWY_SCALAR

using Floats = hn::CappedTag<float, PatchValues::kPiece>;

struct Singles {
  using Value = float;
  static HWY_INLINE auto Of(hn::Vec<Floats> value) { return value; }
};
struct Float16s {
  using Value = uint16_t;
  static HWY_INLINE auto Of(hn::Vec<Floats> value) { return ToFloat16Bits(Floats(), value); }
};
struct BFloat16s {
  using Value = uint16_t;
  static HWY_INLINE auto Of(hn::Vec<Floats> value) { return ToBFloat16Bits(Floats(), value); }
};

// Computes values, and rounds them to a type.
template <class Type>
struct Computed {
  using T = typename Type::Value;
  const PatchValues& values;
  Looked<T> looked;  // of runs shorter than a piece

  static constexpr size_t kBytes = sizeof(T);
  HWY_INLINE void operator()(const uint8_t* from, int count, size_t channel, uint8_t* to) const {
    constexpr int kLanes = hn::MaxLanes(Floats());
    if (count < kLanes) return looked(from, count, channel, to);
    const float* const mean = values.mean[channel].data();
    const float* const deviation = values.deviation[channel].data();
    InPieces(count, kLanes, [&](int i) {
      const Floats d;
      const auto bytes = hn::LoadU(hn::Rebind<uint8_t, Floats>(), from + i);
      const auto value = hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<Floats>(), bytes));
      const auto centred = hn::Sub(value, hn::LoadU(d, mean + i % 3));
      const auto result = Type::Of(hn::Div(centred, hn::LoadU(d, deviation + i % 3)));
      const hn::Repartition<uint8_t, hn::DFromV<decltype(result)>> out;
      hn::StoreU(hn::BitCast(out, result), out, to + static_cast<size_t>(i) * sizeof(T));
    });
  }
};

#endif

// Patches take a few bytes each of many lines, which the processor would not fetch by itself.
constexpr size_t kAhead = 128;

template <class Put>
void WriteWith(const uint8_t* canvas, ImageSize size, ImageSize patch,
               const ProcessorRecipe& recipe, const Put& put, uint8_t* to) {
  const bool interleaved = recipe.interleaved();
  const ptrdiff_t pixel = interleaved ? 3 : 1;
  const int run = interleaved ? 3 * patch.width : patch.width;
  const size_t run_bytes = static_cast<size_t>(run) * Put::kBytes;
  const size_t plane_bytes = run_bytes * static_cast<size_t>(patch.height);
  const auto write_one = [&](int x, int y) {
    for (size_t c = 0; c < (interleaved ? 1 : 3); ++c) {
      const ptrdiff_t line = static_cast<ptrdiff_t>(c) * size.height + y;
      const uint8_t* from = canvas + (line * size.width + x) * pixel;
      const uint8_t* const first = to;
      for (int i = 0; i < patch.height; ++i, from += size.width * pixel, to += run_bytes) {
        hwy::Prefetch(from + kAhead);
        put(from, run, c, to);
      }
      for (int copy = 1; copy < recipe.temporal; ++copy, to += plane_bytes) {
        std::memcpy(to, first, plane_bytes);
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

void Write(const uint8_t* canvas, ImageSize size, ImageSize patch, const ProcessorRecipe& recipe,
           const PatchValues& values, uint8_t* rows) {
  const auto write = [&](const auto& put) { WriteWith(canvas, size, patch, recipe, put, rows); };
  const Looked<float> singles{values.singles, recipe.interleaved()};
  const Looked<uint16_t> halves{values.halves, recipe.interleaved()};
  if (values.dtype == DType::kU8) return write(Copied());
#if HWY_TARGET != HWY_SCALAR
  if (values.computed) {
    if (values.dtype == DType::kF32) return write(Computed<Singles>{values, singles});
    if (values.dtype == DType::kF16) return write(Computed<Float16s>{values, halves});
    return write(Computed<BFloat16s>{values, halves});
  }
#endif
  if (values.dtype == DType::kF32) return write(singles);
  write(halves);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(Write);

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

}  // namespace

PatchValues::PatchValues(const ProcessorRecipe& recipe, DType of) : dtype(of) {
  const Normalisation by = NormalisationOf(recipe);
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < 256; ++i) {
      const float value = singles[c][i] = ValueOf(recipe, c, static_cast<int>(i));
      halves[c][i] = of == DType::kBF16 ? BFloat16Bits(value) : Float16Bits(value);
      computed &=
          std::isfinite(value) && value == (static_cast<float>(i) - by.mean[c]) / by.deviation[c];
    }
    for (size_t i = 0; i < kPiece + 2; ++i) {
      const size_t of_value = recipe.interleaved() ? i % 3 : c;
      mean[c][i] = by.mean[of_value];
      deviation[c][i] = by.deviation[of_value];
    }
  }
}

void WritePatches(const uint8_t* canvas, ImageSize size, ImageSize patch,
                  const ProcessorRecipe& recipe, const PatchValues& values, uint8_t* rows) {
  HWY_DYNAMIC_DISPATCH(Write)(canvas, size, patch, recipe, values, rows);
}

}  // namespace stoker
#endif
