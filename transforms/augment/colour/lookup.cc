// Compiled once for each instruction set.
#include "transforms/augment/colour/lookup.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/colour/lookup.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR

void LookUpAll(const ValueTable& table, uint8_t* values, size_t count) {
  LookUpPlain(table, values, count);
}
ValueRange RangeOf(const uint8_t* values, size_t count) { return FindRangePlain(values, count); }

#else
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<uint8_t>;
constexpr size_t kLanes = hn::MaxLanes(Bytes());

#if HWY_TARGET <= HWY_AVX3_DL

// Keeps the whole table in four registers; one instruction looks up in two of them.
class Table {
 public:
  explicit Table(const ValueTable& table)
      : first_(hn::LoadU(Bytes(), table.data()).raw),
        second_(hn::LoadU(Bytes(), table.data() + 64).raw),
        third_(hn::LoadU(Bytes(), table.data() + 128).raw),
        fourth_(hn::LoadU(Bytes(), table.data() + 192).raw) {}
  HWY_INLINE hn::Vec<Bytes> operator()(hn::Vec<Bytes> values) const {
    const __m512i low = _mm512_permutex2var_epi8(first_, values.raw, second_);
    const __m512i high = _mm512_permutex2var_epi8(third_, values.raw, fourth_);
    return hn::Vec<Bytes>{_mm512_mask_blend_epi8(_mm512_movepi8_mask(values.raw), low, high)};
  }

 private:
  __m512i first_, second_, third_, fourth_;
};

#else

// Sixteen tables of 16 entries, each looked up with the lower half of a value; the bits of the
// upper half then select one of every two results until one is left.
class Table {
 public:
  explicit Table(const ValueTable& table) : table_(table.data()) {}
  HWY_INLINE hn::Vec<Bytes> operator()(hn::Vec<Bytes> values) const {
    return LookUpIn<0, 16>(values, hn::And(values, hn::Set(Bytes(), 15)));
  }

 private:
  template <size_t first, size_t tables>
  HWY_INLINE hn::Vec<Bytes> LookUpIn(hn::Vec<Bytes> values, hn::Vec<Bytes> low) const {
    if constexpr (tables == 1) {
      return hn::TableLookupBytes(hn::LoadDup128(Bytes(), table_ + 16 * first), low);
    } else {
      constexpr size_t kHalf = tables / 2;
      const auto upper = hn::TestBit(values, hn::Set(Bytes(), 16 * kHalf));
      return hn::IfThenElse(upper, LookUpIn<first + kHalf, kHalf>(values, low),
                            LookUpIn<first, kHalf>(values, low));
    }
  }
  const uint8_t* table_;
};

#endif

void LookUpAll(const ValueTable& table, uint8_t* values, size_t count) {
  const Bytes d;
  const Table new_values(table);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(new_values(hn::LoadU(d, values + i)), d, values + i);
  }
  LookUpPlain(table, values + i, count - i);
}

ValueRange RangeOf(const uint8_t* values, size_t count) {
  const Bytes d;
  auto least = hn::Set(d, 255), most = hn::Zero(d);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto some = hn::LoadU(d, values + i);
    least = hn::Min(least, some);
    most = hn::Max(most, some);
  }
  ValueRange range = FindRangePlain(values + i, count - i);
  alignas(64) uint8_t lanes[2 * kLanes];
  hn::Store(least, d, lanes);
  hn::Store(most, d, lanes + kLanes);
  range.least = std::min(range.least, *std::min_element(lanes, lanes + kLanes));
  range.most = std::max(range.most, *std::max_element(lanes + kLanes, lanes + 2 * kLanes));
  return range;
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(LookUpAll);
HWY_EXPORT(RangeOf);

void LookUp(const ValueTable& table, uint8_t* values, size_t count) {
  HWY_DYNAMIC_DISPATCH(LookUpAll)(table, values, count);
}

ValueRange FindRange(const uint8_t* values, size_t count) {
  return HWY_DYNAMIC_DISPATCH(RangeOf)(values, count);
}

// Neighboring values are often equal, and an increment has to wait for the previous one of the same
// counter: so neighbors use separate counters.
Histogram CountValues(const uint8_t* values, size_t count) {
  constexpr size_t kParts = 4;
  uint32_t parts[kParts][256] = {};
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, values + i, 8);
    for (size_t b = 0; b < 8; ++b) ++parts[b % kParts][(eight >> (8 * b)) & 255];
  }
  Histogram histogram = CountValuesPlain(values + i, count - i);
  for (const auto& part : parts) {
    for (size_t v = 0; v < histogram.size(); ++v) histogram[v] += part[v];
  }
  return histogram;
}

}  // namespace stoker
#endif
