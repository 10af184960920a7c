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

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

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
    first_ = hwy::HWY_NAMESPACE::ReorderWidenMulAccumulate(Sums(), a, b, first_, second_);
  }
  // The sums divided by 1 << shift and rounded; `half` is 1 << (shift - 1).
  HWY_INLINE SumsVec Rounded(SumsVec half, int shift) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const SumsVec sums = hn::RearrangeToOddPlusEven(first_, second_);
    return hn::ShiftRightSame(hn::Add(sums, half), shift);
  }

 private:
  // Some instruction sets keep two halves of each sum in separate lanes until the end.
  SumsVec first_, second_;
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
