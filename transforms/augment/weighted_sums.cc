// Compiled once for each instruction set.
#include "transforms/augment/weighted_sums.h"

// As in resize/strip.cc.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#define HWY_WANT_AVX3_DL 1

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/weighted_sums.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Convert(const uint8_t* from, size_t count, float* to) { ToFloatsPlain(from, count, to); }
void SumColumns(const float* weights, const float* const* rows, size_t taps, size_t count,
                float* to) {
  SumDownPlain(weights, rows, taps, count, to);
}
void SumRow(const float* weights, const float* values, size_t taps, size_t count, uint8_t* to) {
  SumAlongPlain(weights, values, taps, count, to);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;
constexpr size_t kLanes = hn::MaxLanes(Floats());
constexpr size_t kBlock = 4 * kLanes;  // what is summed at once: sums wait for each other
static_assert(kBlock <= kSumsOvershoot);

struct Block {
  hn::Vec<Floats> v0, v1, v2, v3;
};

// The weighted sum of kBlock values of each tap; values(t): where those of tap t are.
template <class ValuesOf>
HWY_INLINE Block WeightedSum(const float* weights, size_t taps, ValuesOf values) {
  const Floats d;
  Block sum{hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (size_t t = 0; t < taps; ++t) {
    const auto weight = hn::Set(d, weights[t]);
    const float* from = values(t);
    sum.v0 = hn::Add(sum.v0, hn::Mul(weight, hn::LoadU(d, from)));
    sum.v1 = hn::Add(sum.v1, hn::Mul(weight, hn::LoadU(d, from + kLanes)));
    sum.v2 = hn::Add(sum.v2, hn::Mul(weight, hn::LoadU(d, from + 2 * kLanes)));
    sum.v3 = hn::Add(sum.v3, hn::Mul(weight, hn::LoadU(d, from + 3 * kLanes)));
  }
  return sum;
}

void Convert(const uint8_t* from, size_t count, float* to) {
  for (size_t i = 0; i < count; i += kLanes) {
    const auto values = hn::PromoteTo(Ints(), hn::LoadU(Bytes(), from + i));
    hn::StoreU(hn::ConvertTo(Floats(), values), Floats(), to + i);
  }
}

void SumColumns(const float* weights, const float* const* rows, size_t taps, size_t count,
                float* to) {
  const Floats d;
  for (size_t x = 0; x < count; x += kBlock) {
    const Block sum = WeightedSum(weights, taps, [=](size_t t) HWY_ATTR { return rows[t] + x; });
    hn::StoreU(sum.v0, d, to + x);
    hn::StoreU(sum.v1, d, to + x + kLanes);
    hn::StoreU(sum.v2, d, to + x + 2 * kLanes);
    hn::StoreU(sum.v3, d, to + x + 3 * kLanes);
  }
}

// Rounded to the nearest, ties to even: the last place of 2^23 is 1.
HWY_INLINE void StoreRounded(hn::Vec<Floats> values, uint8_t* to) {
  const auto magic = hn::Set(Floats(), 0x1p23F);
  const auto whole =
      hn::Sub(hn::BitCast(Ints(), hn::Add(values, magic)), hn::BitCast(Ints(), magic));
  hn::StoreU(hn::DemoteTo(Bytes(), whole), Bytes(), to);
}

void SumRow(const float* weights, const float* values, size_t taps, size_t count, uint8_t* to) {
  for (size_t x = 0; x < count; x += kBlock) {
    const Block sum = WeightedSum(weights, taps, [=](size_t t) HWY_ATTR { return values + x + t; });
    StoreRounded(sum.v0, to + x);
    StoreRounded(sum.v1, to + x + kLanes);
    StoreRounded(sum.v2, to + x + 2 * kLanes);
    StoreRounded(sum.v3, to + x + 3 * kLanes);
  }
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(Convert);
HWY_EXPORT(SumColumns);
HWY_EXPORT(SumRow);

void ToFloats(const uint8_t* from, size_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(Convert)(from, count, to);
}

void SumDown(const float* weights, const float* const* rows, size_t taps, size_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(SumColumns)(weights, rows, taps, count, to);
}

void SumAlong(const float* weights, const float* values, size_t taps, size_t count, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(SumRow)(weights, values, taps, count, to);
}

}  // namespace stoker
#endif
