// Products of pairs of 16-bit numbers, and the constants of libjpeg's accurate inverse DCT, which
// is made of them. Compiled once for each instruction set, inside the file that includes it (after
// hwy/highway.h).
#if defined(STOKER_PAIR_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_PAIR_PRODUCTS_INL_H
#undef STOKER_PAIR_PRODUCTS_INL_H
#else
#define STOKER_PAIR_PRODUCTS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {

// × 2^13.
constexpr int kOne = 8192;
constexpr int kF0298 = 2446, kF0390 = 3196, kF0541 = 4433, kF0765 = 6270, kF0899 = 7373,
              kF1175 = 9633, kF1501 = 12299, kF1847 = 15137, kF1961 = 16069, kF2053 = 16819,
              kF2562 = 20995, kF3072 = 25172;

#if HWY_TARGET != HWY_SCALAR

struct Factors {
  int first;
  int second;
};

template <class V>
using WordsOf = hwy::HWY_NAMESPACE::DFromV<V>;
template <class V>
using SumsOf = hwy::HWY_NAMESPACE::Repartition<int32_t, WordsOf<V>>;

template <class V>
HWY_INLINE V PairOf(Factors f) {
  const auto both =
      static_cast<uint32_t>(f.second) << 16 | (static_cast<uint32_t>(f.first) & 0xFFFF);
  return hwy::HWY_NAMESPACE::BitCast(
      WordsOf<V>(), hwy::HWY_NAMESPACE::Set(SumsOf<V>(), static_cast<int32_t>(both)));
}

// first × pair[0] + second × pair[1], for each pair of a, and for two vectors their sum.
template <class V>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<SumsOf<V>> Products(V a, Factors fa) {
  namespace hn = hwy::HWY_NAMESPACE;
  const SumsOf<V> d;
  auto first = hn::Zero(d), second = first;
  first = hn::ReorderWidenMulAccumulate(d, a, PairOf<V>(fa), first, second);
  return hn::RearrangeToOddPlusEven(first, second);
}
template <class V>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<SumsOf<V>> Products(V a, Factors fa, V b, Factors fb) {
  namespace hn = hwy::HWY_NAMESPACE;
  const SumsOf<V> d;
  auto first = hn::Zero(d), second = first;
  first = hn::ReorderWidenMulAccumulate(d, a, PairOf<V>(fa), first, second);
  first = hn::ReorderWidenMulAccumulate(d, b, PairOf<V>(fb), first, second);
  return hn::RearrangeToOddPlusEven(first, second);
}

// sums + first × pair[0] + second × pair[1], for each pair of a.
template <class V>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<SumsOf<V>> AddProducts(hwy::HWY_NAMESPACE::Vec<SumsOf<V>> sums,
                                                          V a, Factors f) {
#if HWY_TARGET <= HWY_AVX3_DL
  if constexpr (sizeof(a.raw) == 64) {
    // The target string of Highway 1.0.3 for AVX3_DL has avxvnni and not avx512vnni, so that
    // _mm512_dpwssd_epi32 does not compile here. The instruction wraps as Products does: the
    // results are the same.
    asm("vpdpwssd %2, %1, %0" : "+v"(sums.raw) : "v"(a.raw), "v"(PairOf<V>(f).raw));
    return sums;
  }
#endif
  return hwy::HWY_NAMESPACE::Add(sums, Products(a, f));
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#endif  // STOKER_PAIR_PRODUCTS_INL_H
