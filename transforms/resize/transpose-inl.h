// Transposing in registers; included once for each instruction set, after <hwy/highway.h>.
#if defined(STOKER_TRANSFORMS_RESIZE_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_TRANSFORMS_RESIZE_TRANSPOSE_INL_H_
#undef STOKER_TRANSFORMS_RESIZE_TRANSPOSE_INL_H_
#else
#define STOKER_TRANSFORMS_RESIZE_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// One round of the perfect shuffle that, repeated log2(count) times, transposes count vectors of
// count lanes inside each block of 128 bits.
template <size_t kCount, class D, class V>
HWY_INLINE void ShuffleRound(D d, const V (&from)[kCount], V (&to)[kCount]) {
  for (size_t i = 0; i < kCount / 2; ++i) {
    to[2 * i] = hwy::HWY_NAMESPACE::InterleaveLower(d, from[i], from[i + kCount / 2]);
    to[2 * i + 1] = hwy::HWY_NAMESPACE::InterleaveUpper(d, from[i], from[i + kCount / 2]);
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();
#endif
