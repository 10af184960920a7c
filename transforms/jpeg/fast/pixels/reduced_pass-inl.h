// One pass of libjpeg's reduced inverse DCTs, of eight coefficients to four or two samples.
// Compiled once for each instruction set, inside the file that includes it (after hwy/highway.h).
#if defined(STOKER_REDUCED_PASS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_REDUCED_PASS_INL_H
#undef STOKER_REDUCED_PASS_INL_H
#else
#define STOKER_REDUCED_PASS_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "transforms/jpeg/fast/pixels/pair_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// The shifts after the first and the second pass.
template <int kSide>
inline constexpr int kFirstShift = kSide == 4 ? 12 : 13;
template <int kSide>
inline constexpr int kSecondShift = kSide == 4 ? 19 : 20;

// The inputs 0 and 2, 4 and 6, 1 and 3, 5 and 7 of a pass, as pairs of 16-bit numbers side by side.
// Input 4 is not used; with two samples, neither are 2 and 6. kSparse: 4 to 7 are zero, and not
// read.
template <class V>
struct PairInputs {
  V p02, p46, p13, p57;
};

// Factors are × 2^13, as in pair_products-inl.h, and the results scaled as the shifts say.
template <int kSide, int kShift, bool kSparse, class V>
HWY_INLINE void ReducedPass(const PairInputs<V>& in, int rounding,
                            hwy::HWY_NAMESPACE::Vec<SumsOf<V>> (&out)[kSide]) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto half = hn::Set(SumsOf<V>(), rounding);
  if constexpr (kSide == 4) {
    auto even0 = Products(in.p02, {2 * kOne, kF1847}),
         even1 = Products(in.p02, {2 * kOne, -kF1847});
    auto odd0 = Products(in.p13, {20995, 7373}), odd1 = Products(in.p13, {8697, -17799});
    if constexpr (!kSparse) {
      const auto six = Products(in.p46, {0, kF0765});
      even0 = hn::Sub(even0, six);
      even1 = hn::Add(even1, six);
      odd0 = hn::Add(odd0, Products(in.p57, {-4926, -4176}));
      odd1 = hn::Add(odd1, Products(in.p57, {11893, -1730}));
    }
    even0 = hn::Add(even0, half);
    even1 = hn::Add(even1, half);
    out[0] = hn::ShiftRight<kShift>(hn::Add(even0, odd0));
    out[1] = hn::ShiftRight<kShift>(hn::Add(even1, odd1));
    out[2] = hn::ShiftRight<kShift>(hn::Sub(even1, odd1));
    out[3] = hn::ShiftRight<kShift>(hn::Sub(even0, odd0));
  } else {
    const auto even = hn::Add(hn::ShiftLeft<1>(Products(in.p02, {2 * kOne, 0})), half);
    auto odd = Products(in.p13, {29692, -10426});
    if constexpr (!kSparse) odd = hn::Add(odd, Products(in.p57, {6967, -5906}));
    out[0] = hn::ShiftRight<kShift>(hn::Add(even, odd));
    out[1] = hn::ShiftRight<kShift>(hn::Sub(even, odd));
  }
}

// Four samples of one row in each 64 bits.
template <class V>
struct RowPairs {
  V first, second;
};

// Each 128 bits of the inputs are a sample of four rows. The result: rows 0 and 1, rows 2 and 3.
template <class W>
HWY_INLINE auto TransposeFour(const W (&sample)[4]) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Repartition<int16_t, hn::DFromV<W>> d;
  const auto a = hn::ReorderDemote2To(d, sample[0], sample[1]);
  const auto b = hn::ReorderDemote2To(d, sample[2], sample[3]);
  const auto even = hn::InterleaveLower(d, a, b), odd = hn::InterleaveUpper(d, a, b);
  return RowPairs<decltype(hn::InterleaveLower(d, a, b))>{hn::InterleaveLower(d, even, odd),
                                                          hn::InterleaveUpper(d, even, odd)};
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#endif  // STOKER_REDUCED_PASS_INL_H
