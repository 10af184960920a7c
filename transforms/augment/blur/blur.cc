// Compiled once for each instruction set.
#include "transforms/augment/blur/blur.h"

#include <algorithm>
#include <cstring>

#include "transforms/augment/blur/blur_scratch.h"
#include "transforms/augment/geometry/border.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/blur/blur.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR

void BlurAll(const Tile& from, const Blur& blur, uint8_t*, const Tile& to) {
  BlurPlain(from, blur, to);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Sums = hn::CappedTag<int32_t, 16>;
using Words = hn::Repartition<int16_t, Sums>;
using HalfWords = hn::Rebind<int16_t, Sums>;
using Bytes = hn::Rebind<uint8_t, Words>;
using FewBytes = hn::Rebind<uint8_t, Sums>;
constexpr size_t kLanes = hn::MaxLanes(Sums());
static_assert(4 * kLanes <= kBlurOvershoot && 4 * kLanes <= kTileOverread);

// Sums of products of 16-bit pairs: lane j gets a[2j] b[2j] + a[2j + 1] b[2j + 1].
class PairSums {
 public:
  HWY_INLINE PairSums() : first_(hn::Zero(Sums())), second_(hn::Zero(Sums())) {}
  HWY_INLINE void Add(hn::Vec<Words> a, hn::Vec<Words> b) {
    first_ = hn::ReorderWidenMulAccumulate(Sums(), a, b, first_, second_);
  }
  // The sums divided by 1 << shift and rounded.
  HWY_INLINE hn::Vec<Sums> Rounded(int shift) const {
    const auto sums = hn::RearrangeToOddPlusEven(first_, second_);
    return hn::ShiftRightSame(hn::Add(sums, hn::Set(Sums(), 1 << (shift - 1))), shift);
  }

 private:
  // Some instruction sets keep two halves of each sum in separate lanes until the end.
  hn::Vec<Sums> first_, second_;
};

HWY_INLINE hn::Vec<Words> WeightPair(const BlurKernel& kernel, size_t pair) {
  int32_t weights;
  std::memcpy(&weights, kernel.weights + 2 * pair, sizeof(weights));
  return hn::BitCast(Words(), hn::Set(Sums(), weights));
}

// Pairs each value of `upper` with the one of `lower`, which goes into the upper half.
void PairRows(const uint8_t* upper, const uint8_t* lower, size_t count, int32_t* pairs) {
  const Sums d;
  for (size_t x = 0; x < count; x += kLanes) {
    const auto low = hn::PromoteTo(d, hn::LoadU(FewBytes(), upper + x));
    const auto high = hn::PromoteTo(d, hn::LoadU(FewBytes(), lower + x));
    hn::Store(hn::Or(low, hn::ShiftLeft<16>(high)), d, pairs + x);
  }
}

// Sums kVectors × kLanes columns.
template <size_t kVectors>
HWY_INLINE void SumSomeDown(const BlurKernel& kernel, const int32_t* const* rows, size_t x,
                            int16_t* to) {
  PairSums sums[kVectors];
  for (size_t p = 0; p < kernel.pairs(); ++p) {
    const auto weights = WeightPair(kernel, p);
    for (size_t v = 0; v < kVectors; ++v) {
      const auto values = hn::Load(Sums(), rows[p] + x + v * kLanes);
      sums[v].Add(hn::BitCast(Words(), values), weights);
    }
  }
  for (size_t v = 0; v < kVectors; ++v) {
    const auto words = hn::DemoteTo(HalfWords(), sums[v].Rounded(kernel.shift - kMiddleBits));
    hn::StoreU(words, HalfWords(), to + x + v * kLanes);
  }
}

void SumDown(const BlurKernel& kernel, const int32_t* const* rows, size_t count, int16_t* to) {
  size_t x = 0;
  for (; x + 4 * kLanes <= count; x += 4 * kLanes) SumSomeDown<4>(kernel, rows, x, to);
  for (; x < count; x += kLanes) SumSomeDown<1>(kernel, rows, x, to);
}

// Sums kVectors × 2 × kLanes values. A vector of words is kLanes pairs that begin at even indices;
// the vector from the next word on has the pairs at odd indices.
template <size_t kVectors>
HWY_INLINE void SumSomeAlong(const BlurKernel& kernel, const int16_t* values, uint8_t* to) {
  PairSums even[kVectors], odd[kVectors];
  for (size_t p = 0; p < kernel.pairs(); ++p) {
    const auto weights = WeightPair(kernel, p);
    for (size_t v = 0; v < kVectors; ++v) {
      const int16_t* from = values + 2 * (p + v * kLanes);
      even[v].Add(hn::LoadU(Words(), from), weights);
      odd[v].Add(hn::LoadU(Words(), from + 1), weights);
    }
  }
  const int shift = kernel.shift + kMiddleBits;
  for (size_t v = 0; v < kVectors; ++v) {
    const auto both = hn::Or(even[v].Rounded(shift), hn::ShiftLeft<16>(odd[v].Rounded(shift)));
    const auto bytes = hn::DemoteTo(Bytes(), hn::BitCast(Words(), both));
    hn::StoreU(bytes, Bytes(), to + v * 2 * kLanes);
  }
}

void SumAlong(const BlurKernel& kernel, const int16_t* values, size_t count, uint8_t* to) {
  size_t x = 0;
  for (; x + 4 * kLanes <= count; x += 4 * kLanes) SumSomeAlong<2>(kernel, values + x, to + x);
  for (; x < count; x += 2 * kLanes) SumSomeAlong<1>(kernel, values + x, to + x);
}

// Fills in the reflected values before and after `count` values.
void ReflectEnds(int reach, int count, int16_t* first) {
  for (int i = 1; i <= reach; ++i) {
    first[-i] = first[Reflected(-i, count)];
    first[count - 1 + i] = first[Reflected(int64_t{count} - 1 + i, count)];
  }
}

// Goes row by row; the pairs of rows that the taps reach are kept in a ring, where each is
// overwritten by the pair that many rows below. Vectors may write beyond a row's end, where later
// rows are written.
void BlurAll(const Tile& from, const Blur& blur, uint8_t* scratch, const Tile& to) {
  const BlurScratch room(blur, from.size, scratch);
  const BlurKernel along(blur.taps.width, blur.sigma_x, room.along);
  const BlurKernel down(blur.taps.height, blur.sigma_y, room.down);
  const auto [width, height] = from.size;
  const auto count = static_cast<size_t>(width);
  int16_t* const line = room.line + (along.middle() + 31) / 32 * 32;
  const int last_pair = 2 * static_cast<int>(down.pairs()) - 2 - down.middle();
  for (size_t c = 0; c < 3; ++c) {
    // Pair n consists of rows n and n + 1 of the reflected image, counted from −middle.
    const auto ring_row = [&](int n) {
      return room.pair_rows + static_cast<size_t>(n % room.ring_rows) * room.pair_row;
    };
    const auto row = [&](int64_t y) {
      return from.row(c, static_cast<int>(Reflected(y, from.size.height)));
    };
    int next = -down.middle();
    for (int y = 0; y < height; ++y) {
      for (; next <= y + last_pair; ++next) {
        PairRows(row(next), row(next + 1), count, ring_row(next + down.middle()));
      }
      for (size_t p = 0; p < down.pairs(); ++p)
        room.taps[p] = ring_row(y + 2 * static_cast<int>(p));
      SumDown(down, room.taps, count, line);
      ReflectEnds(along.middle(), width, line);
      SumAlong(along, line - along.middle(), count, to.row(c, y));
    }
  }
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(BlurAll);

void BlurTo(const Tile& from, const Blur& blur, uint8_t* scratch, const Tile& to) {
  HWY_DYNAMIC_DISPATCH(BlurAll)(from, blur, scratch, to);
}

}  // namespace stoker
#endif
