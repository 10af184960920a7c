// Compiled once for each instruction set.
#include "transforms/augment/colour.h"

#include <algorithm>
#include <cstring>

#include "transforms/augment/blend.h"

// As in resize/strip.cc.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#define HWY_WANT_AVX3_DL 1

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/colour.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

uint64_t SumGray(const Tile& tile) { return SumOfGrayPlain(tile); }
void ToGray(const Tile& tile) { MakeGrayPlain(tile); }
void BlendWithGray(const Tile& tile, float factor) { SaturatePlain(tile, factor); }
void TurnHue(const Tile& tile, float shift) { ShiftHuePlain(tile, shift); }

#else
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;
using Values = hn::Vec<Floats>;
constexpr size_t kLanes = hn::MaxLanes(Floats());

HWY_INLINE Values Constant(float value) { return hn::Set(Floats(), value); }

HWY_INLINE Values Load(const uint8_t* bytes) {
  return hn::ConvertTo(Floats(), hn::PromoteTo(Ints(), hn::LoadU(Bytes(), bytes)));
}

// Cut to 0…255, fraction dropped.
HWY_INLINE void Store(Values values, uint8_t* bytes) {
  const auto whole = hn::ConvertTo(Ints(), hn::Min(values, Constant(255)));
  hn::StoreU(hn::DemoteTo(Bytes(), whole), Bytes(), bytes);
}

// Not yet cut to whole numbers. Binary32 is off by less than 0.00003, and what is no whole number
// is at least 0.0001 away from one: the surplus makes the cut exact.
HWY_INLINE Values Gray(Values red, Values green, Values blue) {
  const auto red_green = hn::Add(hn::Mul(red, Constant(0.2989F)), hn::Mul(green, Constant(0.587F)));
  return hn::Add(red_green, hn::Add(hn::Mul(blue, Constant(0.114F)), Constant(0.00005F)));
}

// change(red, green, blue): in place, of kLanes pixels. Behind the last pixel are zeros.
template <class Change>
HWY_INLINE void ForPixels(const Tile& tile, Change change) {
  const size_t count = tile.plane_bytes();
  uint8_t *red = tile.plane(0), *green = tile.plane(1), *blue = tile.plane(2);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) change(red + i, green + i, blue + i);
  if (const size_t left = count - i; left != 0) {
    uint8_t part[3][kLanes] = {};
    for (size_t c = 0; c < 3; ++c) std::memcpy(part[c], tile.plane(c) + i, left);
    change(part[0], part[1], part[2]);
    for (size_t c = 0; c < 3; ++c) std::memcpy(tile.plane(c) + i, part[c], left);
  }
}

void ToGray(const Tile& tile) {
  ForPixels(tile, [](uint8_t* red, uint8_t* green, uint8_t* blue) HWY_ATTR {
    const Values gray = Gray(Load(red), Load(green), Load(blue));
    const auto bytes = hn::DemoteTo(Bytes(), hn::ConvertTo(Ints(), gray));
    for (uint8_t* to : {red, green, blue}) hn::StoreU(bytes, Bytes(), to);
  });
}

uint64_t SumGray(const Tile& tile) {
  uint64_t sum = 0;
  size_t until_full = 1 << 22;  // × 255 is below 2^32
  auto sums = hn::Zero(Ints());
  const auto add_lanes = [&]() HWY_ATTR {
    uint32_t lanes[kLanes];
    hn::StoreU(hn::BitCast(hn::RebindToUnsigned<Ints>(), sums), hn::RebindToUnsigned<Ints>(),
               lanes);
    for (const uint32_t lane : lanes) sum += lane;
    sums = hn::Zero(Ints());
    until_full = 1 << 22;
  };
  ForPixels(tile, [&](const uint8_t* red, const uint8_t* green, const uint8_t* blue) HWY_ATTR {
    sums = hn::Add(sums, hn::ConvertTo(Ints(), Gray(Load(red), Load(green), Load(blue))));
    if (--until_full == 0) add_lanes();
  });
  add_lanes();
  return sum;
}

void BlendWithGray(const Tile& tile, float factor) {
  const BlendWeights weights(factor);
  const Values of_value = Constant(weights.factor), of_gray = Constant(weights.rest);
  ForPixels(tile, [=](uint8_t* red, uint8_t* green, uint8_t* blue) HWY_ATTR {
    const Values r = Load(red), g = Load(green), b = Load(blue);
    const Values gray = hn::ConvertTo(Floats(), hn::ConvertTo(Ints(), Gray(r, g, b)));
    const Values other = hn::Mul(gray, of_gray);
    Store(hn::Add(hn::Mul(r, of_value), other), red);
    Store(hn::Add(hn::Mul(g, of_value), other), green);
    Store(hn::Add(hn::Mul(b, of_value), other), blue);
  });
}

void TurnHue(const Tile& tile, float shift) {
  const Values turn = Constant(6 * shift);
  const Values zero = Constant(0), one = Constant(1), two = Constant(2), six = Constant(6);
  ForPixels(tile, [=](uint8_t* red, uint8_t* green, uint8_t* blue) HWY_ATTR {
    const Values r = Load(red), g = Load(green), b = Load(blue);
    const Values most = hn::Max(r, hn::Max(g, b)), least = hn::Min(r, hn::Min(g, b));
    const Values range = hn::Sub(most, least);
    const auto is_red = hn::Eq(most, r), is_green = hn::Eq(most, g);
    const Values difference = hn::IfThenElse(
        is_red, hn::Sub(g, b), hn::IfThenElse(is_green, hn::Sub(b, r), hn::Sub(r, g)));
    const Values start = hn::IfThenElse(is_red, zero, hn::IfThenElse(is_green, two, Constant(4)));
    Values hue = hn::Add(hn::Div(difference, hn::Max(range, one)), start);
    hue = hn::Add(hue, turn);
    hue = hn::IfThenElse(hn::Lt(hue, zero), hn::Add(hue, six), hue);
    hue = hn::IfThenElse(hn::Ge(hue, six), hn::Sub(hue, six), hue);
    const auto channel = [&](Values weight) HWY_ATTR {
      const Values part = hn::Mul(range, hn::Min(hn::Max(weight, zero), one));
      return hn::Mul(hn::Add(least, part), Constant(kFromUnit));
    };
    Store(channel(hn::Sub(hn::Abs(hn::Sub(hue, Constant(3))), one)), red);
    Store(channel(hn::Sub(two, hn::Abs(hn::Sub(hue, two)))), green);
    Store(channel(hn::Sub(two, hn::Abs(hn::Sub(hue, Constant(4))))), blue);
  });
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(SumGray);
HWY_EXPORT(ToGray);
HWY_EXPORT(BlendWithGray);
HWY_EXPORT(TurnHue);

uint64_t SumOfGray(const Tile& tile) { return HWY_DYNAMIC_DISPATCH(SumGray)(tile); }

void MakeGray(const Tile& tile) { HWY_DYNAMIC_DISPATCH(ToGray)(tile); }

void Saturate(const Tile& tile, float factor) { HWY_DYNAMIC_DISPATCH(BlendWithGray)(tile, factor); }

void ShiftHue(const Tile& tile, float shift) { HWY_DYNAMIC_DISPATCH(TurnHue)(tile, shift); }

}  // namespace stoker
#endif
