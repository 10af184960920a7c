// Compiled once for each instruction set.
#include "transforms/augment/colour/colour.h"

#include <algorithm>
#include <cstring>

#include "transforms/augment/colour/blend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/colour/colour.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/augment/colour/fused-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR

uint64_t SumGray(const Tile& tile) { return SumOfGrayPlain(tile); }
void ToGray(const Tile& tile) { RecolourPlain(Grayscale{}, tile); }
void BlendWithGray(const Tile& tile, double factor) {
  RecolourPlain(AdjustSaturation{factor}, tile);
}
void TurnHue(const Tile& tile, float shift) { RecolourPlain(AdjustHue{shift}, tile); }
void ChangeHsv(const Tile& tile, const AdjustHsv& step) { RecolourPlain(step, tile); }

#else
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Words = hn::RebindToUnsigned<Floats>;
using Values = hn::Vec<Floats>;
constexpr size_t kLanes = hn::MaxLanes(Floats());
constexpr size_t kPixels = 4 * kLanes;

HWY_INLINE Values Constant(float value) { return hn::Set(Floats(), value); }

// Holds kPixels values: lane j of vector k is value 4j + k, so that no value has to change lanes.
struct Channel {
  Values of[4];
};

HWY_INLINE Channel Load(const uint8_t* bytes) {
  const auto words = hn::BitCast(Ints(), hn::LoadU(hn::Repartition<uint8_t, Words>(), bytes));
  const auto low = hn::Set(Ints(), 255);
  const Floats d;
  return {{hn::ConvertTo(d, hn::And(words, low)),
           hn::ConvertTo(d, hn::And(hn::ShiftRight<8>(words), low)),
           hn::ConvertTo(d, hn::And(hn::ShiftRight<16>(words), low)),
           hn::ConvertTo(d, hn::And(hn::ShiftRight<24>(words), low))}};
}

// Returns the last byte of integers in 0…255: the last byte of 2^23 + value is the value.
HWY_INLINE hn::Vec<Words> LastByte(Values whole) {
  return hn::BitCast(Words(), hn::Add(whole, Constant(0x1p23F)));
}

HWY_INLINE void Store(const Channel& whole, uint8_t* bytes) {
  const auto first = hn::Xor(LastByte(whole.of[0]), LastByte(Constant(0)));
  const auto second = hn::ShiftLeft<8>(LastByte(whole.of[1]));
  const auto third = hn::ShiftLeft<16>(LastByte(whole.of[2]));
  const auto fourth = hn::ShiftLeft<24>(LastByte(whole.of[3]));
  const auto words = hn::Or(hn::Or(first, second), hn::Or(third, fourth));
  const hn::Repartition<uint8_t, Words> d;
  hn::StoreU(hn::BitCast(d, words), d, bytes);
}

// The error of binary32 is less than 0.00003, and a non-integer result is at least 0.0001 away from
// an integer: the surplus makes the truncation exact.
HWY_INLINE Values Gray(Values red, Values green, Values blue) {
  const auto red_green = hn::Add(hn::Mul(red, Constant(0.2989F)), hn::Mul(green, Constant(0.587F)));
  return hn::Floor(
      hn::Add(red_green, hn::Add(hn::Mul(blue, Constant(0.114F)), Constant(0.00005F))));
}

// Calls change(red, green, blue), which works in place on kPixels pixels. Values after the last
// pixel are zero.
template <class Change>
HWY_INLINE void ForPixels(const Tile& tile, Change change) {
  const size_t count = tile.plane_bytes();
  uint8_t *red = tile.plane(0), *green = tile.plane(1), *blue = tile.plane(2);
  size_t i = 0;
  for (; i + kPixels <= count; i += kPixels) change(red + i, green + i, blue + i);
  if (const size_t left = count - i; left != 0) {
    uint8_t part[3][kPixels] = {};
    for (size_t c = 0; c < 3; ++c) std::memcpy(part[c], tile.plane(c) + i, left);
    change(part[0], part[1], part[2]);
    for (size_t c = 0; c < 3; ++c) std::memcpy(tile.plane(c) + i, part[c], left);
  }
}

void ToGray(const Tile& tile) {
  ForPixels(tile, [](uint8_t* red, uint8_t* green, uint8_t* blue) HWY_ATTR {
    Channel gray = Load(red);  // red so far: g++ for Arm refuses a default constructor
    const Channel g = Load(green), b = Load(blue);
    for (size_t k = 0; k < 4; ++k) gray.of[k] = Gray(gray.of[k], g.of[k], b.of[k]);
    for (uint8_t* to : {red, green, blue}) Store(gray, to);
  });
}

uint64_t SumGray(const Tile& tile) {
  // Sums in floats as long as that is exact: each lane adds at most 4 × 255 per iteration.
  constexpr int kMaxTurns = (1 << 24) / (4 * 255);
  uint64_t sum = 0;
  int turns = 0;
  Values sums = Constant(0);
  const auto add_lanes = [&]() HWY_ATTR {
    alignas(64) float lanes[kLanes];
    hn::Store(sums, Floats(), lanes);
    for (const float lane : lanes) sum += static_cast<uint64_t>(lane);
    sums = Constant(0);
    turns = 0;
  };
  ForPixels(tile, [&](const uint8_t* red, const uint8_t* green, const uint8_t* blue) HWY_ATTR {
    const Channel r = Load(red), g = Load(green), b = Load(blue);
    for (size_t k = 0; k < 4; ++k) sums = hn::Add(sums, Gray(r.of[k], g.of[k], b.of[k]));
    if (++turns == kMaxTurns) add_lanes();
  });
  add_lanes();
  return sum;
}

void BlendWithGray(const Tile& tile, double factor) {
  const BlendWeights weights(factor);
  const Values of_value = Constant(weights.factor), of_gray = Constant(weights.rest);
  ForPixels(tile, [=](uint8_t* red, uint8_t* green, uint8_t* blue) HWY_ATTR {
    Channel r = Load(red), g = Load(green), b = Load(blue);
    for (size_t k = 0; k < 4; ++k) {
      const Values gray = Gray(r.of[k], g.of[k], b.of[k]);
      for (Values* value : {&r.of[k], &g.of[k], &b.of[k]}) {
        const Values blend = FusedSum(Floats(), of_gray, gray, hn::Mul(*value, of_value));
        *value = hn::Floor(hn::Min(hn::Max(blend, Constant(0)), Constant(255)));
      }
    }
    Store(r, red);
    Store(g, green);
    Store(b, blue);
  });
}

// Returns the hue in sixths of the circle, −1…5; 0 for gray.
HWY_INLINE Values Hue(Values r, Values g, Values b, Values most, Values range) {
  const auto is_red = hn::Eq(most, r), is_green = hn::Eq(most, g);
  const auto difference =
      hn::IfThenElse(is_red, hn::Sub(g, b), hn::IfThenElse(is_green, hn::Sub(b, r), hn::Sub(r, g)));
  const auto sector =
      hn::IfThenElseZero(hn::Not(is_red), hn::IfThenElse(is_green, Constant(2), Constant(4)));
  return hn::Add(hn::Div(difference, hn::Max(range, Constant(1))), sector);
}

// Rotates the hue of one pixel per lane; `turn` is in sixths of the circle. scale(most,
// least, range) changes the last two; the floor of to_byte(value) is a channel of the result.
template <class Scale, class ToByte>
HWY_INLINE void Turn(Values turn, Scale scale, ToByte to_byte, Values* red, Values* green,
                     Values* blue) {
  const Values zero = Constant(0), one = Constant(1), two = Constant(2), six = Constant(6);
  const Values r = *red, g = *green, b = *blue;
  const Values most = hn::Max(r, hn::Max(g, b));
  Values least = hn::Min(r, hn::Min(g, b));
  Values range = hn::Sub(most, least);
  Values hue = hn::Add(Hue(r, g, b, most, range), turn);
  hue = hn::IfThenElse(hn::Lt(hue, zero), hn::Add(hue, six), hue);
  hue = hn::IfThenElse(hn::Ge(hue, six), hn::Sub(hue, six), hue);
  scale(most, &least, &range);
  const auto channel = [&](Values weight) HWY_ATTR {
    const Values part = hn::Mul(range, hn::Min(hn::Max(weight, zero), one));
    return hn::Floor(to_byte(hn::Add(least, part)));
  };
  *red = channel(hn::Sub(hn::Abs(hn::Sub(hue, Constant(3))), one));
  *green = channel(hn::Sub(two, hn::Abs(hn::Sub(hue, two))));
  *blue = channel(hn::Sub(two, hn::Abs(hn::Sub(hue, Constant(4)))));
}

template <class Scale, class ToByte>
HWY_INLINE void TurnPixels(const Tile& tile, float shift, Scale scale, ToByte to_byte) {
  const Values turn = Constant(6 * shift);
  ForPixels(tile, [=](uint8_t* red, uint8_t* green, uint8_t* blue) HWY_ATTR {
    Channel r = Load(red), g = Load(green), b = Load(blue);
    for (size_t k = 0; k < 4; ++k) Turn(turn, scale, to_byte, &r.of[k], &g.of[k], &b.of[k]);
    Store(r, red);
    Store(g, green);
    Store(b, blue);
  });
}

void TurnHue(const Tile& tile, float shift) {
  TurnPixels(
      tile, shift, [](Values, Values*, Values*) HWY_ATTR {},
      [](Values value) HWY_ATTR { return hn::Mul(value, Constant(kFromUnit)); });
}

void ChangeHsv(const Tile& tile, const AdjustHsv& step) {
  const Values by_saturation = Constant(step.saturation), by_value = Constant(step.value);
  TurnPixels(
      tile, step.shift,
      [=](Values most, Values* least, Values* range) HWY_ATTR {
        const Values value = hn::Min(hn::Mul(most, by_value), Constant(255));
        const Values saturation = hn::Min(
            hn::Div(hn::Mul(*range, by_saturation), hn::Max(most, Constant(1))), Constant(1));
        *range = hn::Mul(value, saturation);
        *least = hn::Sub(value, *range);
      },
      [](Values value) HWY_ATTR { return hn::Add(value, Constant(0.5F)); });
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(SumGray);
HWY_EXPORT(ToGray);
HWY_EXPORT(BlendWithGray);
HWY_EXPORT(TurnHue);
HWY_EXPORT(ChangeHsv);

uint64_t SumOfGray(const Tile& tile) { return HWY_DYNAMIC_DISPATCH(SumGray)(tile); }

void Recolour(const Grayscale& /*step*/, const Tile& tile) { HWY_DYNAMIC_DISPATCH(ToGray)(tile); }

void Recolour(const AdjustSaturation& step, const Tile& tile) {
  HWY_DYNAMIC_DISPATCH(BlendWithGray)(tile, step.factor);
}

void Recolour(const AdjustHue& step, const Tile& tile) {
  HWY_DYNAMIC_DISPATCH(TurnHue)(tile, step.shift);
}

void Recolour(const AdjustHsv& step, const Tile& tile) {
  HWY_DYNAMIC_DISPATCH(ChangeHsv)(tile, step);
}

}  // namespace stoker
#endif
