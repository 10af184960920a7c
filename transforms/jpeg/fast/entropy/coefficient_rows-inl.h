// The rows of coefficients of a group of blocks, taken with a check of their range. Compiled once
// for each instruction set, inside the file that includes it (after hwy/highway.h).
#if defined(STOKER_COEFFICIENT_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_COEFFICIENT_ROWS_INL_H
#undef STOKER_COEFFICIENT_ROWS_INL_H
#else
#define STOKER_COEFFICIENT_ROWS_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "transforms/jpeg/fast/pixels/inverse_dct.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;

// A row of one to four blocks, each in its 128 bits.
using Words = hn::CappedTag<int16_t, kGroupRow>;
using Sums = hn::Repartition<int32_t, Words>;
using Limits = hn::RebindToUnsigned<Words>;
using Bytes = hn::Rebind<uint8_t, Words>;
using Row = hn::Vec<Words>;
using Wide = hn::Vec<Sums>;

// Accumulates, over all groups, the coefficients that are out of range.
struct Range {
  hn::Vec<Limits> excess;  // of coefficients: not zero
  hn::Vec<Limits> middle;  // the largest number between the passes

  HWY_INLINE Range() : excess(hn::Zero(Limits())), middle(hn::Zero(Limits())) {}
  HWY_INLINE bool ok() const {
    const Limits d;
    return hn::AllTrue(d, hn::And(hn::Eq(excess, hn::Zero(d)),
                                  hn::Eq(hn::Min(middle, hn::Set(d, kMaxMiddle)), middle)));
  }
};

// Takes a row of coefficients: dequantises it and sets it to zero.
HWY_INLINE Row Take(const Quantiser& q, int16_t* coefficients, size_t at, Range& range) {
  const Words d;
  const Limits du;
  const Row c = hn::Load(d, coefficients + at);
  hn::Store(hn::Zero(d), d, coefficients + at);
  const auto size = hn::BitCast(du, hn::Abs(c));
  range.excess = hn::Or(range.excess, hn::SaturatedSub(size, hn::Load(du, q.limit.data() + at)));
  return hn::Mul(c, hn::Load(d, q.factor.data() + at));
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#endif  // STOKER_COEFFICIENT_ROWS_INL_H
