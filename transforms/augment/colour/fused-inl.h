// Vector multiply-add with a single rounding: Fused of blend.h. Compiled once for each instruction
// set, inside the file that includes it (after hwy/highway.h).
#if defined(STOKER_FUSED_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_FUSED_INL_H
#undef STOKER_FUSED_INL_H
#else
#define STOKER_FUSED_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// factor × value + sum. `d`: floats.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V FusedSum(D d, V factor, V value, V sum) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulAdd(factor, value, sum);
#else
  const hn::Half<D> half;
  const hn::Rebind<double, hn::Half<D>> wide;
  const auto fused = [=](auto a, auto b, auto c) HWY_ATTR {
    const auto product = hn::Mul(hn::PromoteTo(wide, a), hn::PromoteTo(wide, b));
    return hn::DemoteTo(half, hn::Add(product, hn::PromoteTo(wide, c)));
  };
  const auto lower = fused(hn::LowerHalf(factor), hn::LowerHalf(value), hn::LowerHalf(sum));
  const auto upper =
      fused(hn::UpperHalf(half, factor), hn::UpperHalf(half, value), hn::UpperHalf(half, sum));
  return hn::Combine(d, upper, lower);
#endif
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif
