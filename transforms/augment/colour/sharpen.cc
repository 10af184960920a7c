// Compiled once for each instruction set.
#include "transforms/augment/colour/sharpen.h"

#include <cstring>

#include "transforms/augment/colour/blend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/colour/sharpen.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/augment/colour/fused-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR

void SharpenAll(const Tile& from, double factor, const Tile& to) { SharpenPlain(from, factor, to); }

#else
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::CappedTag<int16_t, 32>;
using UnsignedWords = hn::RebindToUnsigned<Words>;
using Bytes = hn::Rebind<uint8_t, Words>;
using HalfBytes = hn::Half<Bytes>;
using HalfWords = hn::Half<Words>;
using Ints = hn::Rebind<int32_t, HalfWords>;
using Floats = hn::Rebind<float, HalfWords>;
constexpr size_t kLanes = hn::MaxLanes(Words());
static_assert(kLanes <= kTileOverread);

HWY_INLINE hn::Vec<Words> Load(const uint8_t* bytes) {
  return hn::PromoteTo(Words(), hn::LoadU(Bytes(), bytes));
}

HWY_INLINE hn::Vec<Words> SumOfThree(const uint8_t* middle) {
  return hn::Add(hn::Add(Load(middle - 1), Load(middle)), Load(middle + 1));
}

// Computes value + rest × change, of half the lanes.
HWY_INLINE hn::Vec<HalfBytes> Blend(hn::Vec<HalfWords> value, hn::Vec<HalfWords> change,
                                    hn::Vec<Floats> rest) {
  const auto sum = FusedSum(Floats(), rest, hn::ConvertTo(Floats(), hn::PromoteTo(Ints(), change)),
                            hn::ConvertTo(Floats(), hn::PromoteTo(Ints(), value)));
  const auto whole = hn::ConvertTo(Ints(), hn::Min(sum, hn::Set(Floats(), 255)));
  return hn::DemoteTo(HalfBytes(), whole);
}

// Sharpens kLanes pixels; `stride` is the distance to the rows above and below.
HWY_INLINE void SharpenSome(const uint8_t* from, ptrdiff_t stride, hn::Vec<Floats> rest,
                            uint8_t* to) {
  const UnsignedWords u;
  const auto middle = Load(from);
  const auto rows = hn::Add(SumOfThree(from - stride), SumOfThree(from + stride));
  const auto sum = hn::Add(hn::Add(rows, SumOfThree(from)), hn::ShiftLeft<2>(middle));
  const auto rounded = hn::BitCast(u, hn::Add(sum, hn::Set(Words(), 6)));
  // ⌊n / 13⌋ for n below 2^14.
  const auto smooth = hn::BitCast(Words(), hn::MulHigh(rounded, hn::Set(u, 65536 / 13 + 1)));
  const auto change = hn::Sub(smooth, middle);
  const auto lower = Blend(hn::LowerHalf(middle), hn::LowerHalf(change), rest);
  const auto upper =
      Blend(hn::UpperHalf(HalfWords(), middle), hn::UpperHalf(HalfWords(), change), rest);
  hn::StoreU(lower, HalfBytes(), to);
  hn::StoreU(upper, HalfBytes(), to + kLanes / 2);
}

// Vectors may write beyond a row's end, where later rows are written.
void SharpenAll(const Tile& from, double factor, const Tile& to) {
  const auto [width, height] = from.size;
  if (width <= 2 || height <= 2) {
    std::memcpy(to.pixels, from.pixels, 3 * from.plane_bytes());
    return;
  }
  const auto rest = hn::Set(Floats(), BlendWeights(factor).rest);
  const auto row_bytes = static_cast<size_t>(width);
  for (size_t c = 0; c < 3; ++c) {
    std::memcpy(to.plane(c), from.plane(c), row_bytes);
    for (int y = 1; y < height - 1; ++y) {
      const uint8_t* source = from.row(c, y);
      uint8_t* const out = to.row(c, y);
      out[0] = source[0];
      for (int x = 1; x < width - 1; x += static_cast<int>(kLanes)) {
        SharpenSome(source + x, width, rest, out + x);
      }
      out[width - 1] = source[width - 1];
    }
    std::memcpy(to.row(c, height - 1), from.row(c, height - 1), row_bytes);
  }
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(SharpenAll);

void Sharpen(const Tile& from, double factor, const Tile& to) {
  HWY_DYNAMIC_DISPATCH(SharpenAll)(from, factor, to);
}

}  // namespace stoker
#endif
