// Compiled once for each instruction set.
#include "transforms/jpeg/fast/pixels/pixels.h"

#include <cstddef>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/jpeg/fast/pixels/pixels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/jpeg/fast/pixels/pair_products-inl.h"
#include "transforms/to_bytes-inl.h"

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

// ---- Colours

// A vector of pixels, as two vectors of words: those of the lower and upper half of each 128 bits.
using Pixels = hn::CappedTag<uint8_t, 64>;
using PixelWords = hn::Repartition<int16_t, Pixels>;
using PixelSums = hn::Repartition<int32_t, Pixels>;
using Vector = hn::Vec<Pixels>;
using VectorWords = hn::Vec<PixelWords>;

struct RgbVectors {
  Vector r, g, b;
};

// c × factor / 2^16, rounded, for half the factor. c: 2 × (chroma - 128).
HWY_INLINE VectorWords Scale(VectorWords c, int half_factor) {
  return hn::MulFixedPoint15(c, hn::Set(PixelWords(), static_cast<int16_t>(half_factor)));
}

// 2 × (chroma - 128), for words that hold a byte of chroma, and in the upper half 128.
HWY_INLINE VectorWords TwiceFromCenter(Vector interleaved) {
#if HWY_TARGET <= HWY_AVX3
  return VectorWords{_mm512_maddubs_epi16(interleaved.raw, hn::Set(PixelWords(), 2 - 2 * 256).raw)};
#elif HWY_TARGET <= HWY_AVX2
  return VectorWords{_mm256_maddubs_epi16(interleaved.raw, hn::Set(PixelWords(), 2 - 2 * 256).raw)};
#elif HWY_TARGET <= HWY_SSSE3
  return VectorWords{_mm_maddubs_epi16(interleaved.raw, hn::Set(PixelWords(), 2 - 2 * 256).raw)};
#else
  const PixelWords d;
  const auto word = hn::And(hn::BitCast(d, interleaved), hn::Set(d, 255));
  return hn::Sub(hn::Add(word, word), hn::Set(d, 256));
#endif
}

// The upper 16 bits of the sums.
HWY_INLINE VectorWords UpperWords(hn::Vec<PixelSums> lower, hn::Vec<PixelSums> upper) {
#if HWY_TARGET <= HWY_AVX3
  alignas(64) static constexpr uint16_t kUpper[32] = {1,  3,  5,  7,  33, 35, 37, 39, 9,  11, 13,
                                                      15, 41, 43, 45, 47, 17, 19, 21, 23, 49, 51,
                                                      53, 55, 25, 27, 29, 31, 57, 59, 61, 63};
  return VectorWords{_mm512_permutex2var_epi16(lower.raw, _mm512_load_si512(kUpper), upper.raw)};
#else
  return hn::ReorderDemote2To(PixelWords(), hn::ShiftRight<16>(lower), hn::ShiftRight<16>(upper));
#endif
}

struct RgbWords {
  VectorWords r, g, b;
};

HWY_INLINE RgbWords RgbOf(VectorWords y, VectorWords cb, VectorWords cr) {
  const PixelWords d;
  const Factors green{-11277, -23401};  // 0.34414 and 0.71414
  const auto half = hn::Set(PixelSums(), 1 << 15);
  const auto lower = AddProducts(half, hn::InterleaveLower(d, cb, cr), green);
  const auto upper = AddProducts(half, hn::InterleaveUpper(d, cb, cr), green);
  return {hn::Add(y, Scale(cr, 22971)),                                         // 1.402
          hn::Add(y, UpperWords(lower, upper)), hn::Add(y, Scale(cb, 29033))};  // 1.772
}

// The pixels from `i` on.
HWY_INLINE RgbVectors RgbAt(const YccRow& from, int i) {
  const Pixels d;
  const PixelWords d16;
  const Vector y = hn::LoadU(d, from.y + i), cb = hn::LoadU(d, from.cb + i),
               cr = hn::LoadU(d, from.cr + i), zero = hn::Zero(d), center = hn::Set(d, 128);
  const RgbWords lower = RgbOf(hn::BitCast(d16, hn::InterleaveLower(d, y, zero)),
                               TwiceFromCenter(hn::InterleaveLower(d, cb, center)),
                               TwiceFromCenter(hn::InterleaveLower(d, cr, center)));
  const RgbWords upper = RgbOf(hn::BitCast(d16, hn::InterleaveUpper(d, y, zero)),
                               TwiceFromCenter(hn::InterleaveUpper(d, cb, center)),
                               TwiceFromCenter(hn::InterleaveUpper(d, cr, center)));
  using stoker::HWY_NAMESPACE::ToBytes;
  return {ToBytes(lower.r, upper.r), ToBytes(lower.g, upper.g), ToBytes(lower.b, upper.b)};
}

void Convert(const YccRow& from, int pixels, const RgbRow& to) {
  const Pixels d;
  for (int i = 0; i < pixels; i += static_cast<int>(hn::Lanes(d))) {
    const RgbVectors v = RgbAt(from, i);
    hn::StoreU(v.r, d, to.r + i);
    hn::StoreU(v.g, d, to.g + i);
    hn::StoreU(v.b, d, to.b + i);
  }
}

void Interleave(const YccRow& from, int pixels, uint8_t* to) {
  const Pixels d;
  const int step = static_cast<int>(hn::Lanes(d));
  int i = 0;
  for (; i + step <= pixels; i += step) {
    const RgbVectors v = RgbAt(from, i);
    hn::StoreInterleaved3(v.r, v.g, v.b, d, to + ptrdiff_t{3} * i);
  }
  if (i == pixels) return;
  uint8_t last[3 * hn::MaxLanes(d)];
  const RgbVectors v = RgbAt(from, i);
  hn::StoreInterleaved3(v.r, v.g, v.b, d, last);
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
