// Compiled once for each instruction set.
#include "transforms/resize/blend_rows.h"

// As in strip.cc.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#define HWY_WANT_AVX3_DL 1

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/resize/blend_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/resize/pair_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Blend(const RowBlend& blend) { BlendRowsPlain(blend); }

#else
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::CappedTag<int16_t, kBlendRowsOver / 2>;
using Sums = hn::Repartition<int32_t, Words>;
using WordSums = PairSums<Words>;

// kPairs: taps.pairs, or 0 for any number.
template <int kPairs>
void BlendAs(const RowBlend& b) {
  const Words d16;
  const hn::Rebind<uint8_t, Words> d8;
  const int pairs = kPairs != 0 ? kPairs : b.taps.pairs, shift = b.taps.shift;
  const ptrdiff_t stride = b.source_stride, bytes = b.bytes;
  const hn::Vec<Sums> half = hn::Set(Sums(), 1 << (shift - 1));
  uint8_t* HWY_RESTRICT out = b.out;
  for (int output = b.first; output < b.first + b.count; ++output, out += b.out_stride) {
    const int16_t* HWY_RESTRICT weights = b.taps.weights + ptrdiff_t{output} * 2 * pairs;
    const uint8_t* HWY_RESTRICT rows = b.source + (b.taps.starts[output] - b.top) * stride;
    for (ptrdiff_t x = 0; x < bytes; x += static_cast<ptrdiff_t>(hn::Lanes(d16))) {
      WordSums low, high;
      const uint8_t* row = rows + x;
      for (int p = 0; p < pairs; ++p, row += 2 * stride) {
        const hn::Vec<Words> w = WeightPair(d16, weights + 2 * p);
        const hn::Vec<Words> a = hn::PromoteTo(d16, hn::LoadU(d8, row));
        const hn::Vec<Words> c = hn::PromoteTo(d16, hn::LoadU(d8, row + stride));
        low.Add(hn::InterleaveLower(d16, a, c), w);
        high.Add(hn::InterleaveUpper(d16, a, c), w);
      }
      const auto both =
          hn::ReorderDemote2To(d16, low.Rounded(half, shift), high.Rounded(half, shift));
      hn::StoreU(hn::DemoteTo(d8, both), d8, out + x);
    }
  }
}

void Blend(const RowBlend& b) {
  switch (b.taps.pairs) {
    case 2:
      return BlendAs<2>(b);
    case 3:
      return BlendAs<3>(b);
    case 4:
      return BlendAs<4>(b);
    default:
      return BlendAs<0>(b);
  }
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
