// The inverse DCT of groups of four blocks, from the words of their quads (unpack.h). Compiled once
// for each instruction set, inside the file that includes it (after hwy/highway.h).
#if defined(STOKER_GROUP_DCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_GROUP_DCT_INL_H
#undef STOKER_GROUP_DCT_INL_H
#else
#define STOKER_GROUP_DCT_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transforms/jpeg/fast/pixels/pair_products-inl.h"
#include "transforms/jpeg/fast/pixels/reduced_pass-inl.h"
#include "transforms/packed/unpack.h"
#include "transforms/to_bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::packed {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;
using jpeg::HWY_NAMESPACE::PairInputs;

// The words of a quad, or of its first or second two blocks.
using Words = hn::CappedTag<int16_t, kQuadWords>;
using Row = hn::Vec<Words>;
using Wide = hn::Vec<hn::Repartition<int32_t, Words>>;

// ---- Shared by vectors of all sizes

// The inputs of a transform in one dimension are 0 and 2, 4 and 6, 1 and 3, 5 and 7. kSparse: 4 to
// 7 are zero, and not used.
template <int kShift, bool kSparse, class V>
HWY_INLINE void Pass(const PairInputs<V>& in, int rounding,
                     hn::Vec<jpeg::HWY_NAMESPACE::SumsOf<V>> (&out)[8]) {
  using namespace jpeg::HWY_NAMESPACE;  // NOLINT: the constants' names
  using W = hn::Vec<SumsOf<V>>;
  const W half = hn::Set(SumsOf<V>(), rounding);
  W even[4] = {AddProducts(half, in.p02, {kOne, kF0541 + kF0765}),
               AddProducts(half, in.p02, {kOne, kF0541}),
               AddProducts(half, in.p02, {kOne, -kF0541}),
               AddProducts(half, in.p02, {kOne, -(kF0541 + kF0765)})};
  W odd[4] = {Products(in.p13, {kF1501 - kF0899 - kF0390 + kF1175, kF1175}),
              Products(in.p13, {kF1175, kF3072 - kF2562 - kF1961 + kF1175}),
              Products(in.p13, {kF1175 - kF0390, kF1175 - kF2562}),
              Products(in.p13, {kF1175 - kF0899, kF1175 - kF1961})};
  if constexpr (!kSparse) {
    even[0] = AddProducts(even[0], in.p46, {kOne, kF0541});
    even[1] = AddProducts(even[1], in.p46, {-kOne, kF0541 - kF1847});
    even[2] = AddProducts(even[2], in.p46, {-kOne, kF1847 - kF0541});
    even[3] = AddProducts(even[3], in.p46, {kOne, -kF0541});
    odd[0] = AddProducts(odd[0], in.p57, {kF1175 - kF0390, kF1175 - kF0899});
    odd[1] = AddProducts(odd[1], in.p57, {kF1175 - kF2562, kF1175 - kF1961});
    odd[2] = AddProducts(odd[2], in.p57, {kF2053 - kF2562 - kF0390 + kF1175, kF1175});
    odd[3] = AddProducts(odd[3], in.p57, {kF1175, kF0298 - kF0899 - kF1961 + kF1175});
  }
  for (size_t i = 0; i < 4; ++i) {
    out[i] = hn::ShiftRight<kShift>(hn::Add(even[i], odd[i]));
    out[7 - i] = hn::ShiftRight<kShift>(hn::Sub(even[i], odd[i]));
  }
}

constexpr int kColumnsRounding = 1 << 10;
constexpr int kRowsRounding = (1 << 17) + (128 << 18);

// The dequantised words of one or two quads.
template <class D>
HWY_INLINE hn::Vec<D> Dequantise(D d, const int16_t* words, const Quantiser& quantiser, size_t at) {
  return hn::Mul(hn::Load(d, words + at), hn::Load(d, quantiser.factor.data() + at));
}

// The four quads of a pair of columns, or of two; the sparse ones have two.
template <bool kSparse, class D>
HWY_INLINE PairInputs<hn::Vec<D>> ColumnsOf(D d, const int16_t* words, const Quantiser& quantiser,
                                            size_t columns, size_t lane) {
  const auto rows = [&](size_t pair) HWY_ATTR {
    return Dequantise(d, words, quantiser, (4 * pair + columns) * kQuadWords + lane);
  };
  const auto none = hn::Zero(d);
  return {rows(0), kSparse ? none : rows(2), rows(1), kSparse ? none : rows(3)};
}

template <class V>
HWY_INLINE V Interleave(V a, V b, bool upper) {
  const hn::DFromV<V> d;
  const hn::Repartition<uint64_t, decltype(d)> pairs;
  const auto x = hn::BitCast(pairs, a), y = hn::BitCast(pairs, b);
  return hn::BitCast(d,
                     upper ? hn::InterleaveUpper(pairs, x, y) : hn::InterleaveLower(pairs, x, y));
}

// The samples of rows of blocks: one row, and the row below it, in every 128 bits of two vectors.
template <class W>
struct TwoRows {
  W first, second;
};

// Four samples of each row of each block, from the four rows of a transposed matrix.
template <class W>
HWY_INLINE W FourSamples(const W (&v)[8], size_t first) {
  alignas(16) static constexpr uint8_t kTransposed[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                          2, 6, 10, 14, 3, 7, 11, 15};
  const hn::DFromV<W> d;
  const hn::Repartition<int16_t, decltype(d)> d16;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const auto a = hn::ReorderDemote2To(d16, v[first], v[first + 1]);
  const auto b = hn::ReorderDemote2To(d16, v[first + 2], v[first + 3]);
  const auto bytes = stoker::HWY_NAMESPACE::ToBytes(a, b);
  return hn::BitCast(d, hn::TableLookupBytes(bytes, hn::LoadDup128(d8, kTransposed)));
}

template <bool kSparse, class V>
HWY_INLINE auto TransformRows(const PairInputs<V>& in) {
  const jpeg::HWY_NAMESPACE::SumsOf<V> d;
  hn::Vec<decltype(d)> sample[8];
  Pass<18, kSparse>(in, kRowsRounding, sample);
  const auto left = FourSamples(sample, 0), right = FourSamples(sample, 4);
  return TwoRows<decltype(hn::InterleaveLower(d, left, right))>{
      hn::InterleaveLower(d, left, right), hn::InterleaveUpper(d, left, right)};
}

// ---- Between the passes

// A group after the pass over its columns. Each row has the words of columns 0, 2, 4 and 6, and
// then those of columns 1, 3, 5 and 7, of the four blocks. In sparse groups half of them are zero:
// there are half as many rows, each with the words of two rows.
struct Middle {
  static constexpr size_t kRow = 2 * kQuadWords;
  alignas(64) int16_t row[8][kRow];
};

#if HWY_TARGET <= HWY_AVX3

// Words of two quads side by side.
using TwoQuads = hn::FixedTag<int16_t, 2 * kQuadWords>;

template <bool kSparse>
HWY_INLINE void TransformColumns(const int16_t* words, const Quantiser& quantiser, Middle& to) {
  const TwoQuads d;
  hn::Vec<hn::Repartition<int32_t, TwoQuads>> a[8], b[8];
  Pass<11, kSparse>(ColumnsOf<kSparse>(d, words, quantiser, 0, 0), kColumnsRounding, a);
  if constexpr (kSparse) {
    for (size_t i = 0; i < 4; ++i) {
      hn::Store(hn::ReorderDemote2To(d, a[2 * i], a[2 * i + 1]), d, to.row[i]);
    }
  } else {
    Pass<11, false>(ColumnsOf<false>(d, words, quantiser, 2, 0), kColumnsRounding, b);
    for (size_t i = 0; i < 8; ++i) hn::Store(hn::ReorderDemote2To(d, a[i], b[i]), d, to.row[i]);
  }
}

// The lower and the upper halves of two vectors.
template <class V>
HWY_INLINE V LowerHalves(V a, V b) {
  return V{_mm512_shuffle_i64x2(a.raw, b.raw, 0x44)};
}
template <class V>
HWY_INLINE V UpperHalves(V a, V b) {
  return V{_mm512_shuffle_i64x2(a.raw, b.raw, 0xEE)};
}

// Rows [row, row + 4).
template <bool kSparse>
HWY_INLINE PairInputs<hn::Vec<TwoQuads>> RowsOf(const Middle& middle, size_t row) {
  const TwoQuads d;
  const auto load = [&](size_t i) HWY_ATTR { return hn::Load(d, middle.row[i]); };
  if constexpr (kSparse) {
    const auto upper = load(row / 2), lower = load(row / 2 + 1), none = hn::Zero(d);
    return {LowerHalves(upper, lower), none, UpperHalves(upper, lower), none};
  } else {
    const auto upper = Interleave(load(row), load(row + 1), false);
    const auto upper_4 = Interleave(load(row), load(row + 1), true);
    const auto lower = Interleave(load(row + 2), load(row + 3), false);
    const auto lower_4 = Interleave(load(row + 2), load(row + 3), true);
    return {LowerHalves(upper, lower), LowerHalves(upper_4, lower_4), UpperHalves(upper, lower),
            UpperHalves(upper_4, lower_4)};
  }
}

template <bool kSparse>
HWY_INLINE void StoreRows(const Middle& middle, uint8_t* out, ptrdiff_t stride) {
  const hn::Half<hn::Repartition<int32_t, TwoQuads>> half;
  const hn::Repartition<uint8_t, decltype(half)> d8;
  for (size_t row = 0; row < 8; row += 4, out += 4 * stride) {
    const auto rows = TransformRows<kSparse>(RowsOf<kSparse>(middle, row));
    hn::StoreU(hn::BitCast(d8, hn::LowerHalf(half, rows.first)), d8, out);
    hn::StoreU(hn::BitCast(d8, hn::LowerHalf(half, rows.second)), d8, out + stride);
    hn::StoreU(hn::BitCast(d8, hn::UpperHalf(half, rows.first)), d8, out + 2 * stride);
    hn::StoreU(hn::BitCast(d8, hn::UpperHalf(half, rows.second)), d8, out + 3 * stride);
  }
}

#else

template <bool kSparse>
HWY_INLINE void TransformColumns(const int16_t* words, const Quantiser& quantiser, Middle& to) {
  const Words d;
  for (size_t lane = 0; lane < kQuadWords; lane += hn::Lanes(d)) {
    for (size_t half = 0; half < 2; ++half) {
      const size_t at = half * kQuadWords + lane;
      Wide a[8], b[8];
      Pass<11, kSparse>(ColumnsOf<kSparse>(d, words, quantiser, half, lane), kColumnsRounding, a);
      if constexpr (kSparse) {
        for (size_t i = 0; i < 4; ++i) {
          hn::Store(hn::ReorderDemote2To(d, a[2 * i], a[2 * i + 1]), d, to.row[i] + at);
        }
      } else {
        Pass<11, false>(ColumnsOf<false>(d, words, quantiser, half + 2, lane), kColumnsRounding, b);
        for (size_t i = 0; i < 8; ++i) {
          hn::Store(hn::ReorderDemote2To(d, a[i], b[i]), d, to.row[i] + at);
        }
      }
    }
  }
}

// Rows [row, row + 2).
template <bool kSparse>
HWY_INLINE PairInputs<Row> RowsOf(const Middle& middle, size_t row, size_t lane) {
  const Words d;
  const auto load = [&](size_t i, size_t half)
                        HWY_ATTR { return hn::Load(d, middle.row[i] + half * kQuadWords + lane); };
  if constexpr (kSparse) {
    const Row none = hn::Zero(d);
    return {load(row / 2, 0), none, load(row / 2, 1), none};
  } else {
    return {Interleave(load(row, 0), load(row + 1, 0), false),
            Interleave(load(row, 0), load(row + 1, 0), true),
            Interleave(load(row, 1), load(row + 1, 1), false),
            Interleave(load(row, 1), load(row + 1, 1), true)};
  }
}

template <bool kSparse>
HWY_INLINE void StoreRows(const Middle& middle, uint8_t* out, ptrdiff_t stride) {
  const hn::Repartition<uint8_t, Words> d8;
  for (size_t lane = 0; lane < kQuadWords; lane += hn::Lanes(Words()), out += hn::Lanes(d8)) {
    for (size_t row = 0; row < 8; row += 2) {
      const auto rows = TransformRows<kSparse>(RowsOf<kSparse>(middle, row, lane));
      uint8_t* const first = out + static_cast<ptrdiff_t>(row) * stride;
      hn::StoreU(hn::BitCast(d8, rows.first), d8, first);
      hn::StoreU(hn::BitCast(d8, rows.second), d8, first + stride);
    }
  }
}

#endif

// ---- Groups

// Fills four blocks that have only a DC coefficient.
HWY_INLINE void Fill(const int16_t* dc, const Quantiser& quantiser, uint8_t* out,
                     ptrdiff_t stride) {
  uint8_t row[8 * kGroupBlocks];
  for (int b = 0; b < kGroupBlocks; ++b) {
    const int dequantised = static_cast<int16_t>(dc[b] * quantiser.factor[0]);
    const int middle = std::clamp(4 * dequantised, -32768, 32767);
    const int sample = (middle + 16 + 128 * 32) >> 5;
    std::memset(row + 8 * b, std::clamp(sample, 0, 255), 8);
  }
  for (int i = 0; i < 8; ++i) std::memcpy(out + i * stride, row, sizeof(row));
}

// Groups of a run: how many quads each has, the words of those that have any, and all DC
// coefficients.
struct Groups {
  int count = 0;
  unsigned quads[kRunGroups];
  alignas(64) int16_t words[kRunGroups][kGroupWords];
  const int16_t* dc = nullptr;
};

// Writes 8 rows of 32 samples for each group. Each pass is over all groups, because a pass over one
// group waits for the results of its own.
HWY_INLINE void TransformGroups(const Groups& groups, const Quantiser& quantiser, uint8_t* out,
                                ptrdiff_t stride) {
  Middle middle[kRunGroups];
  for (int g = 0; g < groups.count; ++g) {
    if (groups.quads[g] == 0) continue;
    if (groups.quads[g] <= 4) {
      TransformColumns<true>(groups.words[g], quantiser, middle[g]);
    } else {
      TransformColumns<false>(groups.words[g], quantiser, middle[g]);
    }
  }
  for (int g = 0; g < groups.count; ++g, out += 8 * kGroupBlocks) {
    if (groups.quads[g] == 0) {
      Fill(groups.dc + kGroupBlocks * g, quantiser, out, stride);
    } else if (groups.quads[g] <= 4) {
      StoreRows<true>(middle[g], out, stride);
    } else {
      StoreRows<false>(middle[g], out, stride);
    }
  }
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::packed
HWY_AFTER_NAMESPACE();

#endif  // STOKER_GROUP_DCT_INL_H
