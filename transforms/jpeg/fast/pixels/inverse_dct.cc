// Compiled once for each instruction set.
#include "transforms/jpeg/fast/pixels/inverse_dct.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/jpeg/fast/pixels/inverse_dct.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/jpeg/fast/entropy/coefficient_rows-inl.h"
#include "transforms/jpeg/fast/pixels/pair_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

bool Transform(const Quantiser& quantiser, int groups, int16_t* coefficients, const uint8_t* last,
               uint8_t* out, ptrdiff_t stride) {
  return InverseDctPlain(quantiser, groups, coefficients, last, out, stride);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

// The even half (from inputs 0, 2, 4, 6) and the odd half (1, 3, 5, 7) of four outputs; the others
// are their mirror images.
struct Halves {
  Wide even[4];
  Wide odd[4];
};

template <bool kSparse>
HWY_INLINE Halves HalvesOf(Row p02_or_04, Row p26, Row p13, Row p57, Wide rounding) {
  if constexpr (kSparse) {
    const Row p02 = p02_or_04;
    return {{hn::Add(rounding, Products(p02, {kOne, kF0541 + kF0765})),
             hn::Add(rounding, Products(p02, {kOne, kF0541})),
             hn::Add(rounding, Products(p02, {kOne, -kF0541})),
             hn::Add(rounding, Products(p02, {kOne, -(kF0541 + kF0765)}))},
            {Products(p13, {kF1501 - kF0899 - kF0390 + kF1175, kF1175}),
             Products(p13, {kF1175, kF3072 - kF2562 - kF1961 + kF1175}),
             Products(p13, {kF1175 - kF0390, kF1175 - kF2562}),
             Products(p13, {kF1175 - kF0899, kF1175 - kF1961})}};
  } else {
    const Wide sum = hn::Add(rounding, Products(p02_or_04, {kOne, kOne}));
    const Wide difference = hn::Add(rounding, Products(p02_or_04, {kOne, -kOne}));
    const Wide outer = Products(p26, {kF0541 + kF0765, kF0541});
    const Wide inner = Products(p26, {kF0541, kF0541 - kF1847});
    return {{hn::Add(sum, outer), hn::Add(difference, inner), hn::Sub(difference, inner),
             hn::Sub(sum, outer)},
            {Products(p13, {kF1501 - kF0899 - kF0390 + kF1175, kF1175}, p57,
                      {kF1175 - kF0390, kF1175 - kF0899}),
             Products(p13, {kF1175, kF3072 - kF2562 - kF1961 + kF1175}, p57,
                      {kF1175 - kF2562, kF1175 - kF1961}),
             Products(p13, {kF1175 - kF0390, kF1175 - kF2562}, p57,
                      {kF2053 - kF2562 - kF0390 + kF1175, kF1175}),
             Products(p13, {kF1175 - kF0899, kF1175 - kF1961}, p57,
                      {kF1175, kF0298 - kF0899 - kF1961 + kF1175})}};
  }
}

// The transform in one dimension, over eight rows. kSparse: rows 4 to 7 are zero.
template <int kShift, bool kSparse>
HWY_INLINE void Pass(Row (&r)[8]) {
  const Words d;
  const Wide rounding = hn::Set(Sums(), 1 << (kShift - 1));
  const Row zero = hn::Zero(d);
  constexpr size_t kEven = kSparse ? 2 : 4;  // the row paired with row 0
  const Halves low = HalvesOf<kSparse>(
      hn::InterleaveLower(d, r[0], r[kEven]), kSparse ? zero : hn::InterleaveLower(d, r[2], r[6]),
      hn::InterleaveLower(d, r[1], r[3]), kSparse ? zero : hn::InterleaveLower(d, r[5], r[7]),
      rounding);
  const Halves high = HalvesOf<kSparse>(
      hn::InterleaveUpper(d, r[0], r[kEven]), kSparse ? zero : hn::InterleaveUpper(d, r[2], r[6]),
      hn::InterleaveUpper(d, r[1], r[3]), kSparse ? zero : hn::InterleaveUpper(d, r[5], r[7]),
      rounding);
  for (size_t i = 0; i < 4; ++i) {
    r[i] = hn::ReorderDemote2To(d, hn::ShiftRight<kShift>(hn::Add(low.even[i], low.odd[i])),
                                hn::ShiftRight<kShift>(hn::Add(high.even[i], high.odd[i])));
    r[7 - i] = hn::ReorderDemote2To(d, hn::ShiftRight<kShift>(hn::Sub(low.even[i], low.odd[i])),
                                    hn::ShiftRight<kShift>(hn::Sub(high.even[i], high.odd[i])));
  }
}

HWY_INLINE void ShuffleRound(const Row (&from)[8], Row (&to)[8]) {
  const Words d;
  for (size_t i = 0; i < 4; ++i) {
    to[2 * i] = hn::InterleaveLower(d, from[i], from[i + 4]);
    to[2 * i + 1] = hn::InterleaveUpper(d, from[i], from[i + 4]);
  }
}

// Transposes each 128-bit block separately by three perfect shuffles.
HWY_INLINE void Transpose(Row (&r)[8]) {
  Row t[8];
  ShuffleRound(r, t);
  ShuffleRound(t, r);
  ShuffleRound(r, t);
  for (size_t i = 0; i < 8; ++i) r[i] = t[i];
}

// Transforms one group. kSparse: coefficients outside the top left quarter of each block are zero.
template <bool kSparse>
HWY_INLINE void TransformGroup(const Quantiser& q, int16_t* coefficients, uint8_t* out,
                               ptrdiff_t stride, Range& range) {
  const Words d;
  const Limits du;
  for (size_t lane = 0; lane < size_t{kGroupRow}; lane += hn::Lanes(d)) {
    Row r[8];
    for (size_t i = 0; i < (kSparse ? 4 : 8); ++i) {
      r[i] = Take(q, coefficients, i * kGroupRow + lane, range);
    }
    for (size_t i = kSparse ? 4 : 8; i < 8; ++i) r[i] = hn::Zero(d);
    Pass<11, kSparse>(r);
    for (const Row& v : r) range.middle = hn::Max(range.middle, hn::BitCast(du, hn::Abs(v)));
    Transpose(r);
    Pass<18, kSparse>(r);
    Transpose(r);
    for (size_t i = 0; i < 8; ++i) {
      const Row sample = hn::SaturatedAdd(r[i], hn::Set(d, 128));
      hn::StoreU(hn::DemoteTo(Bytes(), sample), Bytes(),
                 out + static_cast<ptrdiff_t>(i) * stride + lane);
    }
  }
}

// Fills four blocks that have only a DC coefficient.
HWY_INLINE bool FillGroup(const Quantiser& q, int16_t* coefficients, uint8_t* out,
                          ptrdiff_t stride) {
  uint8_t row[kGroupRow];
  bool in_range = true;
  for (int b = 0; b < kGroupBlocks; ++b) {
    const int c = std::exchange(coefficients[8 * b], int16_t{0});
    in_range &= std::abs(c) <= q.limit[0];
    const int sample = ((c * q.factor[0] * 4 + 16) >> 5) + 128;
    std::memset(row + 8 * b, std::clamp(sample, 0, 255), 8);
  }
  for (int i = 0; i < 8; ++i) std::memcpy(out + i * stride, row, sizeof(row));
  return in_range;
}

bool Transform(const Quantiser& quantiser, int groups, int16_t* coefficients, const uint8_t* last,
               uint8_t* out, ptrdiff_t stride) {
  Range range;
  bool in_range = true;
  for (int g = 0; g < groups; ++g, coefficients += kGroupStride, out += kGroupRow) {
    const uint8_t* const k = last + g * kGroupBlocks;
    const int most = std::max(std::max(k[0], k[1]), std::max(k[2], k[3]));
    if (most == 0) {
      in_range &= FillGroup(quantiser, coefficients, out, stride);
    } else if (most <= 9) {  // the first ten of the zig-zag lie in the first four rows and columns
      TransformGroup<true>(quantiser, coefficients, out, stride, range);
    } else {
      TransformGroup<false>(quantiser, coefficients, out, stride, range);
    }
  }
  return in_range && range.ok();
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::jpeg {

HWY_EXPORT(Transform);

void SetQuantiser(const std::array<uint16_t, 64>& table, Quantiser& quantiser) {
  for (size_t i = 0; i < quantiser.factor.size(); ++i) {
    const int q = table[i / kGroupRow * 8 + i % 8];
    quantiser.factor[i] = static_cast<int16_t>(q);
    quantiser.limit[i] = static_cast<uint16_t>(q == 0 ? 0xFFFF : kMaxDequantised / q);
  }
}

bool InverseDct(const Quantiser& quantiser, int groups, int16_t* coefficients, const uint8_t* last,
                uint8_t* out, ptrdiff_t stride) {
  return HWY_DYNAMIC_DISPATCH(Transform)(quantiser, groups, coefficients, last, out, stride);
}

}  // namespace stoker::jpeg
#endif
