// Vectors of words as one of bytes. Compiled once for each instruction set,
// inside the file that includes it (after hwy/highway.h).
#if defined(STOKER_TO_BYTES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_TO_BYTES_INL_H
#undef STOKER_TO_BYTES_INL_H
#else
#define STOKER_TO_BYTES_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// Clamps words to bytes: those of a, then those of b, in each 128 bits.
template <class V>
HWY_INLINE auto ToBytes(V a, V b) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Repartition<uint8_t, hn::DFromV<V>> d;
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(a) == 64) return hn::Vec<decltype(d)>{_mm512_packus_epi16(a.raw, b.raw)};
#endif
#if HWY_TARGET <= HWY_AVX2
  if constexpr (sizeof(a) == 32) return hn::Vec<decltype(d)>{_mm256_packus_epi16(a.raw, b.raw)};
#endif
  const hn::Rebind<uint8_t, hn::DFromV<V>> half;
  return hn::Combine(d, hn::DemoteTo(half, b), hn::DemoteTo(half, a));
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // STOKER_TO_BYTES_INL_H
