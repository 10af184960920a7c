// Vector conversion between binary32 and the 16-bit types, with the results of half.h. Compiled
// once for each instruction set, inside the file that includes it (after hwy/highway.h).
//
// Highway 1.0.3 truncates to bfloat16, and to binary16 without an instruction for it.
#if defined(STOKER_HALF_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_HALF_INL_H
#undef STOKER_HALF_INL_H
#else
#define STOKER_HALF_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// D is a vector of floats; HalvesOf has as many lanes of uint16_t.
template <class D>
using HalvesOf = hwy::HWY_NAMESPACE::Rebind<uint16_t, D>;

// Bits below 2^16.
template <class D>
HWY_INLINE auto Narrowed(D, hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::RebindToUnsigned<D>> bits) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::DemoteTo(HalvesOf<D>(), hn::BitCast(hn::RebindToSigned<D>(), bits));
}

// NaN stays NaN if its lower 16 bits are 0.
template <class D>
HWY_INLINE auto ToBFloat16Bits(D d, hwy::HWY_NAMESPACE::Vec<D> value) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd);
  return Narrowed(d, hn::ShiftRight<16>(rounded));
}

template <class D>
HWY_INLINE auto FromBFloat16Bits(D d, hwy::HWY_NAMESPACE::Vec<HalvesOf<D>> bits) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
}

#if HWY_TARGET <= HWY_AVX2 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)

template <class D>
HWY_INLINE auto ToFloat16Bits(D, hwy::HWY_NAMESPACE::Vec<D> value) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::BitCast(HalvesOf<D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), value));
}

template <class D>
HWY_INLINE auto FromFloat16Bits(D d, hwy::HWY_NAMESPACE::Vec<HalvesOf<D>> bits) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
}

#else

// Returns whether a value is above the limit; both are below 2^31.
template <class DU>
HWY_INLINE auto IsAbove(DU du, hwy::HWY_NAMESPACE::Vec<DU> value, int32_t limit) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<DU> di;
  return hn::RebindMask(du, hn::Gt(hn::BitCast(di, value), hn::Set(di, limit)));
}

template <class D>
HWY_INLINE auto ToFloat16Bits(D d, hwy::HWY_NAMESPACE::Vec<D> value) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto sign = hn::And(bits, hn::Set(du, 0x80000000U));
  const auto size = hn::Xor(bits, sign);
  // Normal numbers: the exponent's bias is 112 less, and 13 bits are rounded off; a carry gives the
  // next exponent, or infinity, which is the result for everything from 2^16 on.
  const auto odd = hn::And(hn::ShiftRight<13>(size), hn::Set(du, 1));
  const auto rebiased = hn::Add(hn::Sub(size, hn::Set(du, (112U << 23) - 0xfff)), odd);
  const auto too_large =
      hn::IfThenElse(IsAbove(du, size, 0x7f800000), hn::Set(du, 0x7e00), hn::Set(du, 0x7c00));
  const auto normal =
      hn::IfThenElse(IsAbove(du, size, 0x477fffff), too_large, hn::ShiftRight<13>(rebiased));
  // Subnormal numbers: the last place of ½ is that of binary16's smallest numbers, so the addition
  // rounds.
  const auto half = hn::Set(d, 0.5F);
  const auto sum = hn::Add(hn::BitCast(d, size), half);
  const auto small = hn::Sub(hn::BitCast(du, sum), hn::BitCast(du, half));
  const auto is_normal = IsAbove(du, size, (113 << 23) - 1);
  return Narrowed(d, hn::Or(hn::IfThenElse(is_normal, normal, small), hn::ShiftRight<16>(sign)));
}

template <class D>
HWY_INLINE auto FromFloat16Bits(D d, hwy::HWY_NAMESPACE::Vec<HalvesOf<D>> halves) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::PromoteTo(du, halves);
  const auto size = hn::And(bits, hn::Set(du, 0x7fff));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, size));
  // The exponent's bias is 112 more; if all its bits are set (infinity, NaN), they stay set.
  const auto bias =
      hn::IfThenElse(IsAbove(du, size, 0x7bff), hn::Set(du, 224U << 23), hn::Set(du, 112U << 23));
  const auto normal = hn::Add(hn::ShiftLeft<13>(size), bias);
  const auto count = hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<D>(), size));
  const auto small = hn::BitCast(du, hn::Mul(count, hn::Set(d, 0x1p-24F)));
  return hn::BitCast(d, hn::Or(hn::IfThenElse(IsAbove(du, size, 0x3ff), normal, small), sign));
}

#endif
#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif
