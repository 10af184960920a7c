// Compiled once for each instruction set.
#include "transforms/resize/strip/blend_rows.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/resize/strip/blend_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/resize/strip/pair_sums-inl.h"
#include "transforms/to_bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Blend(const RowBlend& blend) { BlendRowsPlain(blend); }

#else
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::CappedTag<uint8_t, kBlendRowsOver>;
using Words = hn::Repartition<int16_t, Bytes>;
using Sums = hn::Repartition<int32_t, Bytes>;

// kPairs: taps.pairs, or 0 for any number. kFine: weights have high parts.
template <bool kFine, int kPairs>
void BlendAs(const RowBlend& b) {
  const Words d16;
  const Bytes d8;
  const hn::Vec<Bytes> zero = hn::Zero(d8);
  const int pairs = kPairs != 0 ? kPairs : b.taps.pairs, shift = b.taps.shift;
  const ptrdiff_t stride = b.source_stride, bytes = b.bytes;
  const hn::Vec<Sums> half = hn::Set(Sums(), 1 << (shift - 1));
  uint8_t* HWY_RESTRICT out = b.out;
  for (int output = b.first; output < b.first + b.count; ++output, out += b.out_stride) {
    const ptrdiff_t taps = ptrdiff_t{output} * 2 * pairs;
    const int16_t* HWY_RESTRICT weights = b.taps.weights + taps;
    const int16_t* HWY_RESTRICT weights_high = kFine ? b.taps.high + taps : weights;
    const uint8_t* HWY_RESTRICT rows = b.source + (b.taps.starts[output] - b.top) * stride;
    for (ptrdiff_t x = 0; x < bytes; x += static_cast<ptrdiff_t>(hn::Lanes(d8))) {
      std::conditional_t<kFine, FineSums<Words>, PairSums<Words>> s0, s1, s2, s3;
      const uint8_t* row = rows + x;
      for (int p = 0; p < pairs; ++p, row += 2 * stride) {
        const hn::Vec<Words> w = WeightPair(d16, weights + 2 * p);
        const hn::Vec<Words> w_high = WeightPair(d16, weights_high + 2 * p);
        const hn::Vec<Bytes> a = hn::LoadU(d8, row), c = hn::LoadU(d8, row + stride);
        const hn::Vec<Bytes> low = hn::InterleaveLower(d8, a, c);
        const hn::Vec<Bytes> high = hn::InterleaveUpper(d8, a, c);
        s0.Add(hn::BitCast(d16, hn::InterleaveLower(d8, low, zero)), w, w_high);
        s1.Add(hn::BitCast(d16, hn::InterleaveUpper(d8, low, zero)), w, w_high);
        s2.Add(hn::BitCast(d16, hn::InterleaveLower(d8, high, zero)), w, w_high);
        s3.Add(hn::BitCast(d16, hn::InterleaveUpper(d8, high, zero)), w, w_high);
      }
      const auto left = hn::ReorderDemote2To(d16, s0.Rounded(half, shift), s1.Rounded(half, shift));
      const auto right =
          hn::ReorderDemote2To(d16, s2.Rounded(half, shift), s3.Rounded(half, shift));
      hn::StoreU(ToBytes(left, right), d8, out + x);
    }
  }
}

template <bool kFine>
void BlendPairs(const RowBlend& b) {
  switch (b.taps.pairs) {
    case 2:
      return BlendAs<kFine, 2>(b);
    case 3:
      return BlendAs<kFine, 3>(b);
    case 4:
      return BlendAs<kFine, 4>(b);
    default:
      return BlendAs<kFine, 0>(b);
  }
}

void Blend(const RowBlend& b) {
  if (b.taps.high != nullptr) return BlendPairs<true>(b);
  BlendPairs<false>(b);
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(Blend);

void BlendRows(const RowBlend& blend) { HWY_DYNAMIC_DISPATCH(Blend)(blend); }

}  // namespace stoker
#endif
