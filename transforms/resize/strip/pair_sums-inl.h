// Sums of products of 16-bit pairs. Compiled once for each instruction set, inside the file that
// includes it (after hwy/highway.h).
#if defined(STOKER_PAIR_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_PAIR_SUMS_INL_H
#undef STOKER_PAIR_SUMS_INL_H
#else
#define STOKER_PAIR_SUMS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "transforms/resize/axis_filter.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

#if HWY_TARGET <= HWY_AVX3
// sums[j] + a[2j] b[2j] + a[2j+1] b[2j+1]
HWY_INLINE hwy::HWY_NAMESPACE::Vec512<int32_t> AddPairs(hwy::HWY_NAMESPACE::Vec512<int32_t> sums,
                                                        hwy::HWY_NAMESPACE::Vec512<int16_t> a,
                                                        hwy::HWY_NAMESPACE::Vec512<int16_t> b) {
#if HWY_TARGET <= HWY_AVX3_DL
  // The CPUs of this target have the instruction, but Highway 1.0.3 does not tell the compiler.
  asm("vpdpwssd %2, %1, %0" : "+v"(sums.raw) : "v"(a.raw), "v"(b.raw));
  return sums;
#else
  return {_mm512_add_epi32(sums.raw, _mm512_madd_epi16(a.raw, b.raw))};
#endif
}
#endif

// 32-bit lanes: lane j gets a[2j] b[2j] + a[2j+1] b[2j+1]. Words are vectors of int16_t.
template <class Words>
class PairSums {
 public:
  using Sums = hwy::HWY_NAMESPACE::Repartition<int32_t, Words>;
  using WordsVec = hwy::HWY_NAMESPACE::Vec<Words>;
  using SumsVec = hwy::HWY_NAMESPACE::Vec<Sums>;

  HWY_INLINE PairSums()
      : first_(hwy::HWY_NAMESPACE::Zero(Sums())), second_(hwy::HWY_NAMESPACE::Zero(Sums())) {}
  HWY_INLINE void Add(WordsVec a, WordsVec b) {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (sizeof(a.raw) == 64) {
      first_ = AddPairs(first_, a, b);
      return;
    }
#endif
    first_ = hwy::HWY_NAMESPACE::ReorderWidenMulAccumulate(Sums(), a, b, first_, second_);
  }
  // As FineSums, for weights that have no high part.
  HWY_INLINE void Add(WordsVec a, WordsVec low, WordsVec) { Add(a, low); }
  HWY_INLINE SumsVec Total() const {
    return hwy::HWY_NAMESPACE::RearrangeToOddPlusEven(first_, second_);
  }
  // The sums divided by 1 << shift and rounded; `half` is 1 << (shift - 1).
  HWY_INLINE SumsVec Rounded(SumsVec half, int shift) const {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::ShiftRightSame(hn::Add(Total(), half), shift);
  }

 private:
  // Some instruction sets keep two halves of each sum in separate lanes until the end.
  SumsVec first_, second_;
};

// The same sums for weights of two parts, as in AxisTaps. Sums of the parts may wrap around; the
// whole sum does not.
template <class Words>
class FineSums {
 public:
  using Sums = typename PairSums<Words>::Sums;
  using WordsVec = typename PairSums<Words>::WordsVec;
  using SumsVec = typename PairSums<Words>::SumsVec;

  HWY_INLINE FineSums() : low_(), high_() {}
  HWY_INLINE void Add(WordsVec a, WordsVec low, WordsVec high) {
    low_.Add(a, low);
    high_.Add(a, high);
  }
  HWY_INLINE SumsVec Rounded(SumsVec half, int shift) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const SumsVec high = hn::ShiftLeft<kHighShift>(high_.Total());
    return hn::ShiftRightSame(hn::Add(hn::Add(high, low_.Total()), half), shift);
  }

 private:
  PairSums<Words> low_, high_;
};

// A pair of weights in all lanes.
template <class Words>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<Words> WeightPair(Words d, const int16_t* weights) {
  namespace hn = hwy::HWY_NAMESPACE;
  int32_t pair;
  std::memcpy(&pair, weights, sizeof(pair));
  return hn::BitCast(d, hn::Set(hn::Repartition<int32_t, Words>(), pair));
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif
