// Compiled once for each instruction set.
#include "transforms/jpeg/fast/pixels/reduced_dct.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/jpeg/fast/pixels/reduced_dct.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/jpeg/fast/entropy/coefficient_rows-inl.h"
#include "transforms/jpeg/fast/pixels/reduced_pass-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

bool Reduce(const Quantiser& quantiser, int side, int groups, int16_t* coefficients,
            const uint8_t* last, uint8_t* out, ptrdiff_t stride) {
  return ReducedDctPlain(quantiser, side, groups, coefficients, last, out, stride);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

// The pairs of columns of each row, instead of the columns 0 to 7.
HWY_INLINE Row PairColumns(Row row) {
  const hn::Repartition<uint8_t, Words> d;
  alignas(16) static constexpr uint8_t kPairs[16] = {0, 1, 4, 5, 8,  9,  12, 13,
                                                     2, 3, 6, 7, 10, 11, 14, 15};
  return hn::BitCast(Words(), hn::TableLookupBytes(hn::BitCast(d, row), hn::LoadDup128(d, kPairs)));
}

// The inputs of the second pass, for all rows of a block side by side.
template <int kSide>
HWY_INLINE PairInputs<Row> Transpose(const Row (&middle)[kSide]) {
  const Words d;
  const hn::Repartition<int64_t, Words> pairs;
  const auto lower = [&](size_t i) {
    return hn::BitCast(pairs, hn::InterleaveLower(Sums(), hn::BitCast(Sums(), middle[i]),
                                                  hn::BitCast(Sums(), middle[i + 1])));
  };
  const auto upper = [&](size_t i) {
    return hn::BitCast(pairs, hn::InterleaveUpper(Sums(), hn::BitCast(Sums(), middle[i]),
                                                  hn::BitCast(Sums(), middle[i + 1])));
  };
  constexpr size_t kNext = kSide == 4 ? 2 : 0;  // two rows: the upper half repeats them
  return {hn::BitCast(d, hn::InterleaveLower(pairs, lower(0), lower(kNext))),
          hn::BitCast(d, hn::InterleaveUpper(pairs, lower(0), lower(kNext))),
          hn::BitCast(d, hn::InterleaveLower(pairs, upper(0), upper(kNext))),
          hn::BitCast(d, hn::InterleaveUpper(pairs, upper(0), upper(kNext)))};
}

// Stores the samples of all rows. `sample` has one for each row of each block.
template <int kSide>
HWY_INLINE void StoreSamples(const Wide (&sample)[kSide], uint8_t* out, ptrdiff_t stride) {
  const Words d;
  const Bytes d8;
  constexpr size_t kBlocks = kGroupBlocks;
  uint8_t bytes[2][8 * kBlocks];
  if constexpr (kSide == 4) {
    const auto rows = TransposeFour(sample);
    hn::StoreU(hn::DemoteTo(d8, rows.first), d8, bytes[0]);
    hn::StoreU(hn::DemoteTo(d8, rows.second), d8, bytes[1]);
    for (size_t i = 0; i < 4; ++i, out += stride) {
      for (size_t b = 0; b < hn::Lanes(d) / 8; ++b) {
        std::memcpy(out + 4 * b, bytes[i / 2] + 8 * b + i % 2 * 4, 4);
      }
    }
  } else {
    hn::StoreU(hn::DemoteTo(d8, hn::ReorderDemote2To(d, sample[0], sample[1])), d8, bytes[0]);
    for (size_t i = 0; i < 2; ++i, out += stride) {
      for (size_t b = 0; b < hn::Lanes(d) / 8; ++b) {
        out[2 * b] = bytes[0][8 * b + i];
        out[2 * b + 1] = bytes[0][8 * b + i + 4];
      }
    }
  }
}

// Transforms one group. kSparse: coefficients outside the top left quarter of each block are zero.
template <int kSide, bool kSparse>
HWY_INLINE void ReduceGroup(const Quantiser& q, int16_t* coefficients, uint8_t* out,
                            ptrdiff_t stride, Range& range) {
  const Words d;
  const Limits du;
  for (size_t lane = 0; lane < size_t{kGroupRow}; lane += hn::Lanes(d)) {
    Row r[8];
    for (size_t i = 0; i < 8; ++i) {
      r[i] = kSparse && i >= 4 ? hn::Zero(d) : Take(q, coefficients, i * kGroupRow + lane, range);
    }
    Wide low[kSide], high[kSide];
    const auto pass = [&](auto interleave, Wide(&to)[kSide]) {
      const PairInputs<Row> in = {interleave(r[0], r[2]), interleave(r[4], r[6]),
                                  interleave(r[1], r[3]), interleave(r[5], r[7])};
      constexpr int kShift = kFirstShift<kSide>;
      ReducedPass<kSide, kShift, kSparse>(in, 1 << (kShift - 1), to);
    };
    pass([&](Row a, Row b) HWY_ATTR { return hn::InterleaveLower(d, a, b); }, low);
    pass([&](Row a, Row b) HWY_ATTR { return hn::InterleaveUpper(d, a, b); }, high);
    Row middle[kSide];
    for (size_t i = 0; i < size_t{kSide}; ++i) {
      const Row row = hn::ReorderDemote2To(d, low[i], high[i]);
      range.middle = hn::Max(range.middle, hn::BitCast(du, hn::Abs(row)));
      middle[i] = PairColumns(row);
    }
    Wide sample[kSide];
    constexpr int kShift = kSecondShift<kSide>;
    ReducedPass<kSide, kShift, kSparse>(Transpose<kSide>(middle),
                                        (1 << (kShift - 1)) + (128 << kShift), sample);
    StoreSamples<kSide>(sample, out + lane / 8 * kSide, stride);
  }
}

// Fills four blocks that have only a DC coefficient. `sample_of`: FlatSample, or for
// side 1 MeanOfBlock.
template <class SampleOfDc>
HWY_INLINE bool FillGroup(const Quantiser& q, SampleOfDc sample_of, int side, int16_t* coefficients,
                          uint8_t* out, ptrdiff_t stride) {
  bool in_range = true;
  for (int b = 0; b < kGroupBlocks; ++b) {
    int16_t& dc = coefficients[8 * b];
    in_range &= std::abs(dc) <= q.limit[0];
    const uint8_t sample = sample_of(dc * q.factor[0]);
    dc = 0;
    for (int y = 0; y < side; ++y) {
      std::memset(out + y * stride + b * side, sample, static_cast<size_t>(side));
    }
  }
  return in_range;
}

// A sample for each block; its other coefficients have no part in it.
bool TakeMeans(const Quantiser& q, int groups, int16_t* coefficients, uint8_t* out) {
  bool in_range = true;
  for (int g = 0; g < groups; ++g, coefficients += kGroupStride, out += kGroupBlocks) {
    in_range &= FillGroup(q, MeanOfBlock, 1, coefficients, out, 0);
    std::memset(coefficients, 0, 8 * kGroupRow * sizeof(int16_t));
  }
  return in_range;
}

template <int kSide>
bool ReduceGroups(const Quantiser& quantiser, int groups, int16_t* coefficients,
                  const uint8_t* last, uint8_t* out, ptrdiff_t stride) {
  Range range;
  bool in_range = true;
  for (int g = 0; g < groups; ++g, coefficients += kGroupStride, out += kGroupBlocks * kSide) {
    const uint8_t* const k = last + g * kGroupBlocks;
    const int most = std::max(std::max(k[0], k[1]), std::max(k[2], k[3]));
    if (most == 0) {
      in_range &= FillGroup(quantiser, FlatSample, kSide, coefficients, out, stride);
    } else if (most <= 9) {  // the first ten of the zig-zag lie in the first four rows and columns
      ReduceGroup<kSide, true>(quantiser, coefficients, out, stride, range);
    } else {
      ReduceGroup<kSide, false>(quantiser, coefficients, out, stride, range);
    }
  }
  return in_range && range.ok();
}

bool Reduce(const Quantiser& quantiser, int side, int groups, int16_t* coefficients,
            const uint8_t* last, uint8_t* out, ptrdiff_t stride) {
  if (side == 4) return ReduceGroups<4>(quantiser, groups, coefficients, last, out, stride);
  if (side == 2) return ReduceGroups<2>(quantiser, groups, coefficients, last, out, stride);
  return TakeMeans(quantiser, groups, coefficients, out);
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::jpeg {

HWY_EXPORT(Reduce);

bool ReducedDct(const Quantiser& quantiser, int side, int groups, int16_t* coefficients,
                const uint8_t* last, uint8_t* out, ptrdiff_t stride) {
  return HWY_DYNAMIC_DISPATCH(Reduce)(quantiser, side, groups, coefficients, last, out, stride);
}

}  // namespace stoker::jpeg
#endif
