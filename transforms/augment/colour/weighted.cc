// Compiled once for each instruction set.
#include "transforms/augment/colour/weighted.h"

#include "transforms/augment/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/colour/weighted.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR

void AddAll(float weight, const uint8_t* values, size_t count, float* sums) {
  AddWeightedPlain(weight, values, count, sums);
}
void CutAll(const float* sums, size_t count, uint8_t* values) { CutSumsPlain(sums, count, values); }

#else
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kSumsOverread>;
using Ints = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;
constexpr size_t kLanes = hn::MaxLanes(Floats());
static_assert(kLanes <= kTileOverread);

void AddAll(float weight, const uint8_t* values, size_t count, float* sums) {
  const Floats d;
  for (size_t i = 0; i < count; i += kLanes) {
    const auto value = hn::ConvertTo(d, hn::PromoteTo(Ints(), hn::LoadU(Bytes(), values + i)));
    const auto sum = hn::Add(hn::Load(d, sums + i), hn::Mul(hn::Set(d, weight), value));
    hn::Store(sum, d, sums + i);
  }
}

void CutAll(const float* sums, size_t count, uint8_t* values) {
  for (size_t i = 0; i < count; i += kLanes) {
    const auto whole = hn::ConvertTo(Ints(), hn::Load(Floats(), sums + i));
    hn::StoreU(hn::DemoteTo(Bytes(), whole), Bytes(), values + i);
  }
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(AddAll);
HWY_EXPORT(CutAll);

void AddWeighted(float weight, const uint8_t* values, size_t count, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddAll)(weight, values, count, sums);
}

void CutSums(const float* sums, size_t count, uint8_t* values) {
  HWY_DYNAMIC_DISPATCH(CutAll)(sums, count, values);
}

}  // namespace stoker
#endif
