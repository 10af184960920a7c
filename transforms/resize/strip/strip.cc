// Compiled once for each instruction set.
#include "transforms/resize/strip/strip.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/resize/strip/strip.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/resize/strip/pair_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Resample(const Strip& strip) { ResampleStripPlain(strip); }

#else
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::CappedTag<uint8_t, kTileBytes>;
using Words = hn::Repartition<int16_t, Bytes>;
using Sums = hn::Repartition<int32_t, Bytes>;
using Block = hn::FixedTag<int16_t, 8>;  // 128 bits
constexpr size_t kBlocks = hn::MaxLanes(Words()) / 8;

using WordSums = PairSums<Words>;
using WordFineSums = FineSums<Words>;

// ---- Vertical: kTileBytes columns of one output row.
//
// Within each kTileBytes / (16 × kBlocks)-th of `out`, the groups of 8 columns are in the order
// that interleaving gives: the even ones, then the odd ones (GroupPosition).
template <int kPairs>
HWY_INLINE void BlendDown(const uint8_t* HWY_RESTRICT source, ptrdiff_t stride,
                          const int16_t* HWY_RESTRICT weights, int pairs, int shift,
                          int16_t* HWY_RESTRICT out) {
  const Bytes d8;
  const hn::Vec<Bytes> zero = hn::Zero(d8);
  const hn::Vec<Sums> half = hn::Set(Sums(), 1 << (shift - 1));
  const int n = kPairs != 0 ? kPairs : pairs;
  for (size_t i = 0; i < kTileBytes; i += hn::Lanes(d8)) {
    WordSums s0, s1, s2, s3;
    const uint8_t* row = source + i;
    for (int p = 0; p < n; ++p, row += 2 * stride) {
      const hn::Vec<Words> w = WeightPair(Words(), weights + 2 * p);
      const hn::Vec<Bytes> a = hn::LoadU(d8, row), b = hn::LoadU(d8, row + stride);
      const hn::Vec<Bytes> low = hn::InterleaveLower(d8, a, b);
      const hn::Vec<Bytes> high = hn::InterleaveUpper(d8, a, b);
      s0.Add(hn::BitCast(Words(), hn::InterleaveLower(d8, low, zero)), w);
      s1.Add(hn::BitCast(Words(), hn::InterleaveUpper(d8, low, zero)), w);
      s2.Add(hn::BitCast(Words(), hn::InterleaveLower(d8, high, zero)), w);
      s3.Add(hn::BitCast(Words(), hn::InterleaveUpper(d8, high, zero)), w);
    }
    const Words d16;
    hn::Store(hn::ReorderDemote2To(d16, s0.Rounded(half, shift), s1.Rounded(half, shift)), d16,
              out + i);
    hn::Store(hn::ReorderDemote2To(d16, s2.Rounded(half, shift), s3.Rounded(half, shift)), d16,
              out + i + hn::Lanes(d16));
  }
}

template <int kPairs>
void BlendTileAs(const Strip& s, const uint8_t* column, int16_t* tile) {
  const ptrdiff_t taps = 2 * s.rows.pairs;
  const int shift = s.rows.shift - MiddleBits(s.columns.shift);
  for (int r = 0; r < s.row_count; ++r) {
    const int output = s.first_row + r;
    BlendDown<kPairs>(column + (s.rows.starts[output] - s.top) * s.stride, s.stride,
                      s.rows.weights + output * taps, s.rows.pairs, shift, tile + r * kTileBytes);
  }
}

void BlendTileDown(const Strip& s, const uint8_t* column, int16_t* tile) {
  switch (s.rows.pairs) {
    case 1:
      return BlendTileAs<1>(s, column, tile);
    case 2:
      return BlendTileAs<2>(s, column, tile);
    case 3:
      return BlendTileAs<3>(s, column, tile);
    default:
      return BlendTileAs<0>(s, column, tile);
  }
}

// ---- Transpose of 16-bit values: rows of a tile to columns.

// Returns the position of columns [8 × group, 8 × group + 8) in a row of a tile, in units of 8.
constexpr size_t GroupPosition(size_t group) {
  const size_t in_vectors = group % (2 * kBlocks);
  return group - in_vectors + (in_vectors % 2) * kBlocks + in_vectors / 2;
}

// Loads blocks of 8 values from kBlocks addresses.
HWY_INLINE hn::Vec<Words> LoadBlocks(const int16_t* from, size_t distance) {
  const Block d;
#if HWY_MAX_BYTES >= 64
  const hn::FixedTag<int16_t, 16> d2;
  return hn::Combine(
      Words(), hn::Combine(d2, hn::Load(d, from + 3 * distance), hn::Load(d, from + 2 * distance)),
      hn::Combine(d2, hn::Load(d, from + distance), hn::Load(d, from)));
#elif HWY_MAX_BYTES >= 32
  return hn::Combine(Words(), hn::Load(d, from + distance), hn::Load(d, from));
#else
  (void)distance;
  return hn::Load(d, from);
#endif
}

// One round of the perfect shuffle that, repeated log2(count) times, transposes count vectors of
// count lanes inside each block of 128 bits.
template <size_t kCount, class D, class V>
HWY_INLINE void ShuffleRound(D d, const V (&from)[kCount], V (&to)[kCount]) {
  for (size_t i = 0; i < kCount / 2; ++i) {
    to[2 * i] = hn::InterleaveLower(d, from[i], from[i + kCount / 2]);
    to[2 * i + 1] = hn::InterleaveUpper(d, from[i], from[i + kCount / 2]);
  }
}

// `turned`: destination of the tile's column 0; column c goes c × step columns further.
HWY_INLINE void TurnTile(const int16_t* HWY_RESTRICT tile, int16_t* HWY_RESTRICT turned, int step) {
  const Words d;
  for (size_t group = 0; group < kTileBytes / 8; ++group) {
    const int16_t* from = tile + GroupPosition(group) * 8;
    int16_t* to = turned + group * 8 * step * kStripRows;
    for (size_t r = 0; r < kStripRows; r += 8 * kBlocks) {
      hn::Vec<Words> a[8], b[8];
      for (size_t i = 0; i < 8; ++i) {
        a[i] = LoadBlocks(from + (r + i) * kTileBytes, 8 * kTileBytes);
      }
      ShuffleRound(d, a, b);
      ShuffleRound(d, b, a);
      ShuffleRound(d, a, b);
      for (size_t i = 0; i < 8; ++i) hn::Store(b[i], d, to + i * step * kStripRows + r);
    }
  }
}

// ---- Horizontal: kStripPixels output pixels of all rows, as columns of bytes.

// `first`: the block's first column of turned values. Column (pixel × channels + channel) of
// `mixed` has kStripRows bytes.
template <int kPairs, int kChannels, bool kFine>
HWY_INLINE void BlendAlong(const Strip& s, int x, int n, const int16_t* HWY_RESTRICT first,
                           uint8_t* HWY_RESTRICT mixed) {
  const Words d16;
  const hn::Rebind<uint8_t, Words> d8;
  const int shift = s.columns.shift + MiddleBits(s.columns.shift);
  const hn::Vec<Sums> half = hn::Set(Sums(), 1 << (shift - 1));
  const int pairs = kPairs != 0 ? kPairs : s.columns.pairs;
  constexpr ptrdiff_t kPixel = kChannels * kStripRows;
  for (int i = 0; i < n; ++i) {
    const ptrdiff_t taps = static_cast<ptrdiff_t>(x + i) * 2 * pairs;
    const int16_t* weights = s.columns.weights + taps;
    const int16_t* weights_high = kFine ? s.columns.high + taps : weights;
    const int16_t* pixel = first + (s.columns.starts[x + i] - s.columns.starts[x]) * kPixel;
    uint8_t* to = mixed + (s.mirror ? kStripPixels - 1 - i : i) * kPixel;
    for (size_t lane = 0; lane < static_cast<size_t>(kPixel); lane += hn::Lanes(d16)) {
      std::conditional_t<kFine, WordFineSums, WordSums> low, high;
      const int16_t* column = pixel + lane;
      for (int p = 0; p < pairs; ++p, column += 2 * kPixel) {
        const hn::Vec<Words> w = WeightPair(Words(), weights + 2 * p);
        const hn::Vec<Words> a = hn::Load(d16, column), b = hn::Load(d16, column + kPixel);
        const hn::Vec<Words> w_high = WeightPair(Words(), weights_high + 2 * p);
        low.Add(hn::InterleaveLower(d16, a, b), w, w_high);
        high.Add(hn::InterleaveUpper(d16, a, b), w, w_high);
      }
      const auto both =
          hn::ReorderDemote2To(d16, low.Rounded(half, shift), high.Rounded(half, shift));
      hn::Store(hn::DemoteTo(d8, both), d8, to + lane);
    }
  }
}

// ---- Transpose of bytes: columns to rows of finished pixels.

// Transposes 16 columns, `step` apart, of kStripRows bytes each.
HWY_INLINE void TurnBytes(const uint8_t* HWY_RESTRICT columns, ptrdiff_t step,
                          uint8_t* HWY_RESTRICT rows, ptrdiff_t stride) {
  const hn::CappedTag<uint8_t, kStripRows> d;
  const hn::FixedTag<uint8_t, 16> d16;
  for (size_t r = 0; r < kStripRows; r += hn::Lanes(d)) {
    hn::Vec<decltype(d)> a[16], b[16];
    for (ptrdiff_t i = 0; i < 16; ++i) a[i] = hn::Load(d, columns + i * step * kStripRows + r);
    ShuffleRound(d, a, b);
    ShuffleRound(d, b, a);
    ShuffleRound(d, a, b);
    ShuffleRound(d, b, a);
    for (size_t i = 0; i < 16; ++i, rows += stride) {
#if HWY_MAX_BYTES >= 32
      hn::StoreU(hn::LowerHalf(d16, a[i]), d16, rows);
      hn::StoreU(hn::UpperHalf(d16, a[i]), d16, rows + 16 * stride);
#else
      hn::StoreU(a[i], d16, rows);
#endif
    }
  }
}

// Stores kStripPixels pixels per row; pixel 0 of the first row goes to `finished`.
template <int kChannels>
HWY_INLINE void StoreRows(const uint8_t* mixed, const ResampledRows& rows, uint8_t* finished) {
  constexpr int kPieces = kChannels;
  for (ptrdiff_t p = 0; p < kPieces; ++p) {
    if (rows.plane == 0) {
      TurnBytes(mixed + p * 16 * kStripRows, 1, finished + p * 16, rows.stride);
    } else {
      TurnBytes(mixed + p * kStripRows, kChannels, finished + p * rows.plane, rows.stride);
    }
  }
}

// ---- A strip.

// The vertically blended columns: [begin, end) in bytes of a pixel row, for any layout; column c
// lies at turned + (c - begin) × kStripRows.
struct Turned {
  ptrdiff_t begin = 0;
  ptrdiff_t end = 0;
};

// Ensures that columns [first, end) are blended. `first` does not decrease from call to call.
HWY_INLINE void Provide(const Strip& s, ptrdiff_t first, ptrdiff_t end, Turned& have,
                        int16_t* tile) {
  if (first > have.end) have = {first, first};
  const ptrdiff_t tile_columns = kTileBytes * s.planes;
  while (have.end < end) {
    if (have.end + tile_columns - have.begin > s.turned_columns) {
      std::memmove(s.turned, s.turned + (first - have.begin) * kStripRows,
                   static_cast<size_t>(have.end - first) * kStripRows * sizeof(int16_t));
      have.begin = first;
    }
    for (int p = 0; p < s.planes; ++p) {
      BlendTileDown(s, s.plane[p] + have.end / s.planes, tile);
      TurnTile(tile, s.turned + (have.end - have.begin + p) * kStripRows, s.planes);
    }
    have.end += tile_columns;
  }
}

// Emits the share of the leaving rows that belongs to block `x`.
HWY_NOINLINE void EmitShare(const Strip& s, int x, int n) {
  const int begin = s.leaving.rows * x / s.columns.count;
  ResampledRows share = s.leaving;
  share.rows = s.leaving.rows * (x + n) / s.columns.count - begin;
  share.values += begin * share.stride;
  EmitRows(share, *s.format, s.leaving_out + begin * s.format->down);
}

template <int kPairs, int kChannels, bool kFine = false>
void ResampleAs(const Strip& s) {
  alignas(64) int16_t tile[kStripRows * kTileBytes];
  alignas(64) uint8_t mixed[kChannels * kStripPixels * kStripRows];
  if (s.row_count < kStripRows) std::memset(tile, 0, sizeof(tile));
  if (s.columns.count < kStripPixels) std::memset(mixed, 0, sizeof(mixed));
  const ResampledRows rows = RowsOf(s);
  Turned have;
  for (int x = 0; x < s.columns.count; x += kStripPixels) {
    const int n = std::min(kStripPixels, s.columns.count - x);
    const ptrdiff_t first = ptrdiff_t{s.columns.starts[x]} * kChannels;
    const int end = std::min(s.columns.starts[x + n - 1] + 2 * s.columns.pairs, s.width);
    Provide(s, first, ptrdiff_t{end} * kChannels, have, tile);
    BlendAlong<kPairs, kChannels, kFine>(s, x, n, s.turned + (first - have.begin) * kStripRows,
                                         mixed);
    const int to = s.mirror ? s.columns.count - x - kStripPixels : x;
    const int step = 1 + (kChannels - 1) * static_cast<int>(rows.plane == 0);
    StoreRows<kChannels>(mixed, rows, s.finished + ptrdiff_t{to} * step);
    if (s.leaving.rows != 0) EmitShare(s, x, n);
  }
}

template <int kChannels>
void ResampleChannels(const Strip& s) {
  if (s.columns.high != nullptr) return ResampleAs<0, kChannels, true>(s);
  switch (s.columns.pairs) {
    case 1:
      return ResampleAs<1, kChannels>(s);
    case 2:
      return ResampleAs<2, kChannels>(s);
    case 3:
      return ResampleAs<3, kChannels>(s);
    default:
      return ResampleAs<0, kChannels>(s);
  }
}

void Resample(const Strip& s) {
  if (s.channels == 1) return ResampleChannels<1>(s);
  ResampleChannels<3>(s);
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(Resample);

void ResampleStrip(const Strip& strip) {
  if (strip.along.blocks != 0) return ResampleStripByRows(strip);
  HWY_DYNAMIC_DISPATCH(Resample)(strip);
}

}  // namespace stoker
#endif
