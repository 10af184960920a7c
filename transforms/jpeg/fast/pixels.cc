// Compiled once for each instruction set.
#include "transforms/jpeg/fast/pixels.h"

#include <cstddef>
#include <cstring>

#include "transforms/instruction_sets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/jpeg/fast/pixels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Columns(const uint8_t* row, int samples, uint8_t* out) {
  UpsampleColumnsPlain(row, samples, out);
}
void Rows(const uint8_t* near, const uint8_t* far, bool below, int samples, uint8_t* out) {
  UpsampleRowsPlain(near, far, below, samples, out);
}
void Both(const uint8_t* near, const uint8_t* far, int samples, uint8_t* out) {
  UpsampleBothPlain(near, far, samples, out);
}
void Convert(const YccRow& from, int pixels, const RgbRow& to) {
  ConvertToRgbPlain(from, pixels, to);
}
void Interleave(const YccRow& from, int pixels, uint8_t* to) {
  ConvertToInterleavedPlain(from, pixels, to);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::CappedTag<int16_t, 32>;
using Bytes = hn::Rebind<uint8_t, Words>;
using Sums = hn::Repartition<int32_t, Words>;
using W = hn::Vec<Words>;

HWY_INLINE W Load(const uint8_t* from) { return hn::PromoteTo(Words(), hn::LoadU(Bytes(), from)); }
HWY_INLINE W Constant(int value) { return hn::Set(Words(), static_cast<int16_t>(value)); }
HWY_INLINE W Thrice(W v) { return hn::Add(v, hn::Add(v, v)); }

// even[0] odd[0] even[1] …, each below 256.
HWY_INLINE void StoreAlternating(W even, W odd, uint8_t* to) {
  const hn::Repartition<uint8_t, Words> d;
  hn::StoreU(hn::BitCast(d, hn::Or(even, hn::ShiftLeft<8>(odd))), d, to);
}

void Columns(const uint8_t* HWY_RESTRICT row, int samples, uint8_t* HWY_RESTRICT out) {
  for (int i = 0; i < samples; i += static_cast<int>(hn::Lanes(Words()))) {
    const W own = Thrice(Load(row + i));
    const W even = hn::Add(hn::Add(own, Load(row + i - 1)), Constant(1));
    const W odd = hn::Add(hn::Add(own, Load(row + i + 1)), Constant(2));
    StoreAlternating(hn::ShiftRight<2>(even), hn::ShiftRight<2>(odd), out + 2 * i);
  }
}

void Rows(const uint8_t* HWY_RESTRICT near, const uint8_t* HWY_RESTRICT far, bool below,
          int samples, uint8_t* HWY_RESTRICT out) {
  const W rounding = Constant(below ? 2 : 1);
  for (int i = 0; i < samples; i += static_cast<int>(hn::Lanes(Words()))) {
    const W sum = hn::Add(hn::Add(Thrice(Load(near + i)), Load(far + i)), rounding);
    hn::StoreU(hn::DemoteTo(Bytes(), hn::ShiftRight<2>(sum)), Bytes(), out + i);
  }
}

void Both(const uint8_t* HWY_RESTRICT near, const uint8_t* HWY_RESTRICT far, int samples,
          uint8_t* HWY_RESTRICT out) {
  const auto blend = [=](int i) HWY_ATTR { return hn::Add(Thrice(Load(near + i)), Load(far + i)); };
  for (int i = 0; i < samples; i += static_cast<int>(hn::Lanes(Words()))) {
    const W own = Thrice(blend(i));
    const W even = hn::Add(hn::Add(own, blend(i - 1)), Constant(8));
    const W odd = hn::Add(hn::Add(own, blend(i + 1)), Constant(7));
    StoreAlternating(hn::ShiftRight<4>(even), hn::ShiftRight<4>(odd), out + 2 * i);
  }
}

// (v × factor / 2^16 + 1) / 2, both rounded down: v × factor / 2^17, rounded.
HWY_INLINE W Scale(W v, int factor) {
  return hn::ShiftRight<1>(hn::Add(hn::MulHigh(v, Constant(factor)), Constant(1)));
}

// Green's sum of two products needs 32 bits; it is computed from pairs of neighbors.
HWY_INLINE hn::Vec<Sums> GreenSum(W pairs, W factors) {
  hn::Vec<Sums> first = hn::Zero(Sums()), second = first;
  first = hn::ReorderWidenMulAccumulate(Sums(), pairs, factors, first, second);
  const hn::Vec<Sums> sum = hn::RearrangeToOddPlusEven(first, second);
  return hn::ShiftRight<16>(hn::Add(sum, hn::Set(Sums(), 1 << 15)));
}

struct RgbVectors {
  hn::Vec<Bytes> r, g, b;
};

// The pixels from `i` on.
HWY_INLINE RgbVectors RgbAt(const YccRow& from, int i) {
  const Words d;
  const W center = Constant(128);
  // -0.34414, and 1 - 0.71414 since 0.71414 alone would not fit: one Cr is subtracted below.
  const W green = hn::BitCast(d, hn::Set(Sums(), 18734 << 16 | (-22554 & 0xFFFF)));
  const W y = Load(from.y + i);
  const W cb = hn::Sub(Load(from.cb + i), center), cr = hn::Sub(Load(from.cr + i), center);
  const W cb2 = hn::Add(cb, cb), cr2 = hn::Add(cr, cr);
  const auto low = GreenSum(hn::InterleaveLower(d, cb, cr), green);
  const auto high = GreenSum(hn::InterleaveUpper(d, cb, cr), green);
  return {hn::DemoteTo(Bytes(), hn::Add(y, hn::Add(cr, Scale(cr2, 26345)))),  // 1.402
          hn::DemoteTo(Bytes(), hn::Add(y, hn::Sub(hn::ReorderDemote2To(d, low, high), cr))),
          hn::DemoteTo(Bytes(), hn::Add(y, hn::Add(cb2, Scale(cb2, -14942))))};  // 1.772
}

void Convert(const YccRow& from, int pixels, const RgbRow& to) {
  for (int i = 0; i < pixels; i += static_cast<int>(hn::Lanes(Words()))) {
    const RgbVectors v = RgbAt(from, i);
    hn::StoreU(v.r, Bytes(), to.r + i);
    hn::StoreU(v.g, Bytes(), to.g + i);
    hn::StoreU(v.b, Bytes(), to.b + i);
  }
}

void Interleave(const YccRow& from, int pixels, uint8_t* to) {
  const int step = static_cast<int>(hn::Lanes(Words()));
  int i = 0;
  for (; i + step <= pixels; i += step) {
    const RgbVectors v = RgbAt(from, i);
    hn::StoreInterleaved3(v.r, v.g, v.b, Bytes(), to + ptrdiff_t{3} * i);
  }
  if (i == pixels) return;
  uint8_t last[3 * hn::MaxLanes(Bytes())];
  const RgbVectors v = RgbAt(from, i);
  hn::StoreInterleaved3(v.r, v.g, v.b, Bytes(), last);
  std::memcpy(to + ptrdiff_t{3} * i, last, static_cast<size_t>(3 * (pixels - i)));
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::jpeg {

HWY_EXPORT(Columns);
HWY_EXPORT(Rows);
HWY_EXPORT(Both);
HWY_EXPORT(Convert);
HWY_EXPORT(Interleave);

void UpsampleColumns(const uint8_t* row, int samples, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Columns)(row, samples, out);
}
void UpsampleRows(const uint8_t* near, const uint8_t* far, bool below, int samples, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Rows)(near, far, below, samples, out);
}
void UpsampleBoth(const uint8_t* near, const uint8_t* far, int samples, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Both)(near, far, samples, out);
}
void ConvertToRgb(const YccRow& from, int pixels, const RgbRow& to) {
  HWY_DYNAMIC_DISPATCH(Convert)(from, pixels, to);
}
void ConvertToInterleaved(const YccRow& from, int pixels, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(Interleave)(from, pixels, to);
}

}  // namespace stoker::jpeg
#endif
