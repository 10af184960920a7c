// Resamples strips of planes row by row. Compiled once for each instruction set; only AVX-512 has
// the necessary shuffles.
#include <algorithm>
#include <cstring>

#include "transforms/resize/strip/strip.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/resize/strip/strip_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/resize/strip/pair_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET > HWY_AVX3

bool CanBlendRows() { return false; }
void ResampleRows(const Strip& strip) { ResampleStripPlain(strip); }

#else
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::FixedTag<uint8_t, 64>;
using Words = hn::FixedTag<int16_t, 32>;
using Sums = hn::FixedTag<int32_t, 16>;

// ---- Vertical: a few output rows of all planes.

// Stores the 128-bit blocks of `even` and `odd` alternately.
HWY_INLINE void StoreInTurn(hn::Vec<Words> even, hn::Vec<Words> odd, int16_t* out) {
  alignas(64) static constexpr int64_t kLower[8] = {0, 1, 8, 9, 2, 3, 10, 11};
  alignas(64) static constexpr int64_t kUpper[8] = {4, 5, 12, 13, 6, 7, 14, 15};
  const __m512i lower = _mm512_load_si512(kLower), upper = _mm512_load_si512(kUpper);
  _mm512_store_si512(out, _mm512_permutex2var_epi64(even.raw, lower, odd.raw));
  _mm512_store_si512(out + 32, _mm512_permutex2var_epi64(even.raw, upper, odd.raw));
}

// Blends 64 columns of one output row. In the sums the groups of four columns are in the order that
// interleaving gives.
template <int kPairs>
HWY_INLINE void BlendTile(const uint8_t* HWY_RESTRICT row, ptrdiff_t stride,
                          const int16_t* HWY_RESTRICT weights, ptrdiff_t pairs, int shift,
                          hn::Vec<Sums> half, int16_t* HWY_RESTRICT out) {
  const Bytes d8;
  const auto zero = hn::Zero(d8);
  hn::Vec<Sums> s0 = half, s1 = half, s2 = half, s3 = half;
  const ptrdiff_t n = kPairs != 0 ? kPairs : pairs;
  for (ptrdiff_t p = 0; p < n; ++p, row += 2 * stride) {
    const hn::Vec<Words> w = WeightPair(Words(), weights + 2 * p);
    const auto a = hn::LoadU(d8, row), b = hn::LoadU(d8, row + stride);
    const auto low = hn::InterleaveLower(d8, a, b), high = hn::InterleaveUpper(d8, a, b);
    s0 = AddPairs(s0, hn::BitCast(Words(), hn::InterleaveLower(d8, low, zero)), w);
    s1 = AddPairs(s1, hn::BitCast(Words(), hn::InterleaveUpper(d8, low, zero)), w);
    s2 = AddPairs(s2, hn::BitCast(Words(), hn::InterleaveLower(d8, high, zero)), w);
    s3 = AddPairs(s3, hn::BitCast(Words(), hn::InterleaveUpper(d8, high, zero)), w);
  }
  const Words d16;
  const auto even =
      hn::ReorderDemote2To(d16, hn::ShiftRightSame(s0, shift), hn::ShiftRightSame(s1, shift));
  const auto odd =
      hn::ReorderDemote2To(d16, hn::ShiftRightSame(s2, shift), hn::ShiftRightSame(s3, shift));
  StoreInTurn(even, odd, out);
}

// The rows of a strip that are blended at a time.
struct Group {
  int first = 0;
  int count = 0;
};

// Writes up to 63 values past the end of each row.
template <int kPairs>
void BlendDown(const Strip& s, Group group) {
  const int shift = s.rows.shift - MiddleBits(s.columns.shift);
  const hn::Vec<Sums> half = hn::Set(Sums(), 1 << (shift - 1));
  const ptrdiff_t stride = s.stride, width = s.width, pairs = s.rows.pairs;
  int16_t* HWY_RESTRICT out = s.turned;
  for (int r = 0; r < group.count; ++r) {
    const int output = s.first_row + group.first + r;
    const int16_t* weights = s.rows.weights + output * 2 * pairs;
    const ptrdiff_t top = (s.rows.starts[output] - s.top) * stride;
    for (int c = 0; c < s.planes; ++c, out += BlendedRow(s.width)) {
      for (ptrdiff_t x = 0; x < width; x += kTileBytes) {
        BlendTile<kPairs>(s.plane[c] + top + x, stride, weights, pairs, shift, half, out + x);
      }
    }
  }
}

void BlendDownAny(const Strip& s, Group group) {
  switch (s.rows.pairs) {
    case 1:
      return BlendDown<1>(s, group);
    case 2:
      return BlendDown<2>(s, group);
    case 3:
      return BlendDown<3>(s, group);
    default:
      return BlendDown<0>(s, group);
  }
}

// ---- Horizontal: the same rows, 16 pixels at a time.

// Picks the values of a window for a block's sums.
template <bool kNarrow>
HWY_INLINE hn::Vec<Words> Pick(hn::Vec<Words> low, hn::Vec<Words> high, hn::Vec<Words> indices) {
  if constexpr (kNarrow) return hn::Vec<Words>{_mm512_permutexvar_epi16(indices.raw, low.raw)};
  return hn::Vec<Words>{_mm512_permutex2var_epi16(low.raw, indices.raw, high.raw)};
}

HWY_INLINE void ClampToBytes(hn::Vec<Sums> (&rgb)[3]) {
  for (hn::Vec<Sums>& c : rgb) c = hn::Clamp(c, hn::Zero(Sums()), hn::Set(Sums(), 255));
}

// Stores three channels' values, 0…255, as 48 interleaved bytes, and 16 bytes more.
HWY_INLINE void StoreMixed(const hn::Vec<Sums> (&rgb)[3], uint8_t* out) {
  alignas(64) static constexpr int32_t kDense[16] = {0,  1,  2,  4,  5, 6, 8,  9,
                                                     10, 12, 13, 14, 3, 7, 11, 15};
  alignas(16) static constexpr uint8_t kThree[16] = {0,  1,  2,  4,  5,  6,  8,  9,
                                                     10, 12, 13, 14, 15, 15, 15, 15};
  const Bytes d8;
  const auto mixed = hn::Or(hn::Or(rgb[0], hn::ShiftLeft<8>(rgb[1])), hn::ShiftLeft<16>(rgb[2]));
  const auto three = hn::TableLookupBytes(hn::BitCast(d8, mixed), hn::LoadDup128(d8, kThree));
  const auto dense =
      hn::TableLookupLanes(hn::BitCast(Sums(), three), hn::SetTableIndices(Sums(), kDense));
  hn::StoreU(hn::BitCast(d8, dense), d8, out);
}

// A block's indices and weights for a pair of taps, in the layout of Along::pairs.
template <bool kFine>
struct AlongPair {
  static constexpr ptrdiff_t kPart = 2 * kAlongPixels;
  static constexpr ptrdiff_t kValues = (kFine ? 3 : 2) * kPart;

  HWY_INLINE static AlongPair Load(const int16_t* from) {
    const Words d;
    return {hn::Load(d, from), hn::Load(d, from + kPart), hn::Load(d, from + kValues - kPart)};
  }

  hn::Vec<Words> indices, weights, high;  // without kFine, `high` is not used
};

template <bool kFine>
struct AlongSum {
  HWY_INLINE void Add(hn::Vec<Words> picked, const AlongPair<kFine>& pair) {
    low = AddPairs(low, picked, pair.weights);
    if constexpr (kFine) high = AddPairs(high, picked, pair.high);
  }
  HWY_INLINE hn::Vec<Sums> Shifted(int shift) const {
    if constexpr (!kFine) return hn::ShiftRightSame(low, shift);
    return hn::ShiftRightSame(hn::Add(low, hn::ShiftLeft<kHighShift>(high)), shift);
  }

  hn::Vec<Sums> low, high;
};

// Which weights AxisTaps has: neither `high` nor `overshoots`, the latter, or both.
enum class Kind { kExact, kOvershoots, kFine };

template <int kPairs, int kChannels, bool kNarrow, Kind kKind>
HWY_INLINE void BlendAlong(const Strip& s, const ResampledRows& rows, Group group) {
  constexpr bool kFine = kKind == Kind::kFine;
  using Pair = AlongPair<kFine>;
  const Words d16;
  const int shift = s.columns.shift + MiddleBits(s.columns.shift);
  const hn::Vec<Sums> half = hn::Set(Sums(), 1 << (shift - 1));
  const ptrdiff_t row_stride = BlendedRow(s.width), plane = rows.plane, down = rows.stride;
  const int blocks = s.along.blocks, pairs = kPairs != 0 ? kPairs : s.columns.pairs;
  const int32_t* windows = s.along.windows;
  const int16_t* table = s.along.pairs;
  for (int b = 0; b < blocks; ++b, table += pairs * Pair::kValues) {
    Pair fixed[kPairs == 0 ? 1 : kPairs];
    for (int p = 0; p < kPairs; ++p) fixed[p] = Pair::Load(table + p * Pair::kValues);
    const int16_t* HWY_RESTRICT row = s.turned + windows[b];
    uint8_t* HWY_RESTRICT out =
        s.finished + group.first * down +
        ptrdiff_t{b} * kAlongPixels * (kChannels == 3 && plane == 0 ? 3 : 1);
    for (int r = 0; r < group.count; ++r, out += down) {
      hn::Vec<Sums> sums[kChannels];
      for (int c = 0; c < kChannels; ++c, row += row_stride) {
        const auto low = hn::LoadU(d16, row), high = kNarrow ? low : hn::LoadU(d16, row + 32);
        AlongSum<kFine> sum{half, hn::Zero(Sums())};
        for (int p = 0; p < pairs; ++p) {
          const Pair pair = kPairs != 0 ? fixed[p] : Pair::Load(table + p * Pair::kValues);
          sum.Add(Pick<kNarrow>(low, high, pair.indices), pair);
        }
        sums[c] = sum.Shifted(shift);
      }
      if constexpr (kChannels == 3) {
        if (plane == 0) {
          if constexpr (kKind != Kind::kExact) ClampToBytes(sums);
          StoreMixed(sums, out);
          continue;
        }
      }
      const hn::FixedTag<uint8_t, kAlongPixels> d8;
      for (int c = 0; c < kChannels; ++c) {
        hn::StoreU(hn::DemoteTo(d8, sums[c]), d8, out + c * plane);
      }
    }
  }
}

// ---- A strip.

// Emits the share of the leaving rows that belongs to this group.
void EmitShare(const Strip& s, Group group) {
  const int begin = s.leaving.rows * group.first / s.row_count;
  ResampledRows share = s.leaving;
  share.rows = s.leaving.rows * (group.first + group.count) / s.row_count - begin;
  share.values += begin * share.stride;
  EmitRows(share, *s.format, s.leaving_out + begin * s.format->down);
}

// DemoteTo clamps, so that only interleaved channels are clamped here.
template <int kPairs, int kChannels, bool kNarrow, Kind kKind>
void ResampleAs(const Strip& s) {
  const ResampledRows rows = RowsOf(s);
  for (Group group; group.first < s.row_count; group.first += kRowsTogether) {
    group.count = std::min(kRowsTogether, s.row_count - group.first);
    BlendDownAny(s, group);
    BlendAlong<kPairs, kChannels, kNarrow, kKind>(s, rows, group);
    if (s.leaving.rows != 0) EmitShare(s, group);
  }
}

template <int kPairs, int kChannels, Kind kKind>
void ResamplePairs(const Strip& s) {
  return s.along.narrow ? ResampleAs<kPairs, kChannels, true, kKind>(s)
                        : ResampleAs<kPairs, kChannels, false, kKind>(s);
}

template <int kChannels, Kind kKind>
void ResampleChannels(const Strip& s) {
  switch (s.columns.pairs) {
    case 1:
      return ResamplePairs<1, kChannels, kKind>(s);
    case 2:
      return ResamplePairs<2, kChannels, kKind>(s);
    case 3:
      return ResamplePairs<3, kChannels, kKind>(s);
    default:
      return ResamplePairs<0, kChannels, kKind>(s);
  }
}

template <Kind kKind>
void ResampleAny(const Strip& s) {
  s.channels == 1 ? ResampleChannels<1, kKind>(s) : ResampleChannels<3, kKind>(s);
}

bool CanBlendRows() { return true; }

void ResampleRows(const Strip& s) {
  if (s.columns.high != nullptr) return ResampleAny<Kind::kFine>(s);
  s.columns.overshoots ? ResampleAny<Kind::kOvershoots>(s) : ResampleAny<Kind::kExact>(s);
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(CanBlendRows);
HWY_EXPORT(ResampleRows);

bool CanBlendRows() { return HWY_DYNAMIC_DISPATCH(CanBlendRows)(); }

void ResampleStripByRows(const Strip& strip) { HWY_DYNAMIC_DISPATCH(ResampleRows)(strip); }

}  // namespace stoker
#endif
