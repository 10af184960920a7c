// Compiled once for each instruction set.
#include "transforms/packed/unpack.h"

#include <algorithm>
#include <cstring>

#include "transforms/jpeg/fast/pixels/reduced_dct.h"
#include "transforms/packed/scan/controls.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/packed/unpack.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/jpeg/fast/pixels/reduced_pass-inl.h"
#include "transforms/packed/group_dct-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::packed {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Unpack(const uint8_t* run, int from, int to, int16_t* words) {
  UnpackRunPlain(run, from, to, words);
}
void Transform(const uint8_t* run, int from, int to, const Quantiser& quantiser, uint8_t* out,
               ptrdiff_t stride) {
  TransformRunPlain(run, from, to, quantiser, out, stride);
}
void Reduce(const uint8_t* run, int from, int to, const Quantiser& quantiser, int side,
            uint8_t* out, ptrdiff_t stride) {
  ReduceRunPlain(run, from, to, quantiser, side, out, stride);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::Repartition<uint8_t, Words>;

// The words of half a quad.
using HalfWords = hn::CappedTag<int16_t, kQuadWords / 2>;
using HalfBytes = hn::Repartition<uint8_t, HalfWords>;

// ---- Words

// Takes each word out of two bytes.
template <class D>
HWY_INLINE hn::Vec<D> Shifted(D d, hn::Vec<D> picked, const Control& control, size_t word) {
  const hn::Repartition<uint16_t, D> du;
  const auto up = hn::BitCast(d, hn::Load(du, control.up.data() + word));
  const auto down = hn::BitCast(d, hn::Load(du, control.down.data() + word));
  return hn::MulHigh(hn::Mul(picked, up), down);
}

template <class D, class V>
HWY_INLINE hn::Vec<D> Extract(D d, V bytes, const Control& control, size_t word) {
  const hn::Repartition<uint8_t, D> d8;
  const V picked = hn::TableLookupBytes(bytes, hn::Load(d8, control.bytes.data() + 2 * word));
  return Shifted(d, hn::BitCast(d, picked), control, word);
}

// Takes a quad from `p` to `words`. Returns the end of its bytes.
HWY_INLINE const uint8_t* TakeQuad(const uint8_t* p, size_t tuple, int16_t* words) {
  const Words d;
  const Control& control = kControls.quad[tuple];
#if HWY_TARGET <= HWY_AVX3_DL
  const Bytes d8;
  const auto index = hn::Load(d8, control.bytes_of_quad.data());
  const hn::Vec<Bytes> picked{_mm256_permutexvar_epi8(index.raw, hn::LoadU(d8, p).raw)};
  hn::Store(Shifted(d, hn::BitCast(d, picked), control, 0), d, words);
#else
  const HalfBytes half;
  const auto first = hn::LoadU(half, p);
  const auto second = hn::LoadU(half, p + kControls.second_half[tuple]);
#if HWY_TARGET <= HWY_AVX2
  hn::Store(Extract(d, hn::Combine(Bytes(), second, first), control, 0), d, words);
#else
  hn::Store(Extract(d, first, control, 0), d, words);
  hn::Store(Extract(d, second, control, 8), d, words + 8);
#endif
#endif
  return p + kControls.size[tuple];
}

// Takes quads [kFirst, kFirst + 4) of a group that has `quads`.
template <size_t kFirst>
HWY_INLINE const uint8_t* TakeFour(const uint8_t* p, const uint8_t* tuples, size_t quads,
                                   int16_t* words) {
  uint32_t four;
  std::memcpy(&four, tuples + kFirst, sizeof(four));
  const size_t left = quads - kFirst;
  if (left < 4) four &= (uint32_t{1} << (8 * left)) - 1;  // the first tuple has no bits
  for (size_t i = kFirst; i < kFirst + 4; ++i, four >>= 8) {
    p = TakeQuad(p, four & 0xFF, words + kQuadOrder[i] * kQuadWords);
  }
  return p;
}

template <size_t kFirst>
HWY_INLINE void ClearFrom(int16_t* words) {
  const Words d;
  for (size_t i = kFirst; i < kQuads; ++i) {
    int16_t* const quad = words + kQuadOrder[i] * kQuadWords;
    for (size_t k = 0; k < kQuadWords; k += hn::Lanes(d)) hn::Store(hn::Zero(d), d, quad + k);
  }
}

// Takes the quads of a group, which are after `p`. Missing quads are zero; if there are at most
// four, only the first four are written. They are taken in rounds of four, because the end of
// rounds is predicted more often than the end of quads.
HWY_INLINE const uint8_t* TakeQuads(const uint8_t* p, unsigned quads, int16_t* words) {
  const uint8_t* const tuples = p;
  p = TakeFour<0>(p + quads, tuples, quads, words);
  if (quads <= 4) return p;
  p = TakeFour<4>(p, tuples, quads, words);
  if (quads <= 8) {
    ClearFrom<8>(words);
    return p;
  }
  p = TakeFour<8>(p, tuples, quads, words);
  if (quads <= 12) {
    ClearFrom<12>(words);
    return p;
  }
  return TakeFour<12>(p, tuples, quads, words);
}

HWY_INLINE const uint8_t* PassGroup(const uint8_t* p) {
  const unsigned quads = std::min<unsigned>(*p++, kQuads);
  size_t bytes = quads;
  for (unsigned i = 0; i < quads; ++i) bytes += kControls.size[p[i]];
  return p + bytes;
}

// ---- DC coefficients

// Each lane, and all before it.
HWY_INLINE hn::Vec<HalfWords> RunningSum(hn::Vec<HalfWords> v) {
  const HalfWords d;
  v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
  v = hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
  return hn::Add(v, hn::ShiftLeftLanes<4>(d, v));
}

// Takes those of a run. Returns where its groups begin.
HWY_INLINE const uint8_t* TakeDcs(const uint8_t* run, int16_t* dc) {
  const HalfWords d;
  const HalfBytes d8;
  const size_t code = run[0] & 15;
  const auto width = static_cast<size_t>(DcWidth(static_cast<int>(code)));
  const uint8_t* const differences = run + 3;
  const auto first = hn::Set(d, static_cast<int16_t>(LoadU16(run + 1)));
  const Control& control = kControls.dc[code];
  const auto low = hn::Add(first, RunningSum(Extract(d, hn::LoadU(d8, differences), control, 0)));
  const auto high = hn::Add(hn::Broadcast<7>(low),
                            RunningSum(Extract(d, hn::LoadU(d8, differences + width), control, 8)));
  hn::Store(low, d, dc);
  hn::Store(high, d, dc + 8);
  return differences + 2 * width;
}

// Adds the DC coefficients of a group to its first quad.
HWY_INLINE void AddDcs(const int16_t* dc, int16_t* words) {
  const Words d;
  const hn::Repartition<uint64_t, Words> du;
  const Bytes d8;
  constexpr uint8_t kNone = 0x80;
  alignas(32) static constexpr uint8_t kPlaces[32] = {
      0,     1,     kNone, kNone, kNone, kNone, kNone, kNone, 2,     3,     kNone,
      kNone, kNone, kNone, kNone, kNone, 4,     5,     kNone, kNone, kNone, kNone,
      kNone, kNone, 6,     7,     kNone, kNone, kNone, kNone, kNone, kNone};
  uint64_t four = 0;
  std::memcpy(&four, dc, sizeof(four));
  for (size_t k = 0; k < kQuadWords; k += hn::Lanes(d)) {
    const auto placed =
        hn::TableLookupBytesOr0(hn::BitCast(d8, hn::Set(du, four)), hn::Load(d8, kPlaces + 2 * k));
    hn::Store(hn::Or(hn::Load(d, words + k), hn::BitCast(d, placed)), d, words + k);
  }
}

// ---- Inverse DCT of reduced images

// Stores two rows of `side` samples of each block of the lane's.
template <int kSide>
HWY_INLINE void StoreReduced(const Wide (&sample)[kSide], uint8_t* out, ptrdiff_t stride) {
  const Words d;
  const hn::Rebind<uint8_t, Words> half;
  constexpr size_t kBytes = 2 * kSide;  // of a row in 128 bits
  alignas(32) uint8_t bytes[2 * 16];
  if constexpr (kSide == 4) {
    // Each 128 bits are a row of two blocks, then the row below it.
    const auto rows = jpeg::HWY_NAMESPACE::TransposeFour(sample);
    hn::Store(hn::DemoteTo(half, rows.first), half, bytes);
    hn::Store(hn::DemoteTo(half, rows.second), half, bytes + 16);
    for (size_t k = 0; k < hn::Lanes(d); k += 8, out += kBytes) {
      std::memcpy(out, bytes + k, kBytes);
      std::memcpy(out + stride, bytes + 16 + k, kBytes);
    }
  } else {
    // Each 64 bits are one of the two samples of a row of two blocks, then of the row below it.
    hn::Store(hn::DemoteTo(half, hn::ReorderDemote2To(d, sample[0], sample[1])), half, bytes);
    for (size_t k = 0; k < hn::Lanes(d); k += 8, out += kBytes) {
      for (size_t i = 0; i < 4; ++i) {
        out[i] = bytes[k + i / 2 + i % 2 * 4];
        out[stride + static_cast<ptrdiff_t>(i)] = bytes[k + 2 + i / 2 + i % 2 * 4];
      }
    }
  }
}

// kSparse: the group has no quads but the first four.
template <int kSide, bool kSparse>
HWY_NOINLINE void ReduceGroup(const int16_t* words, const Quantiser& quantiser, uint8_t* out,
                              ptrdiff_t stride) {
  using namespace jpeg::HWY_NAMESPACE;  // NOLINT: the functions' names
  const Words d;
  constexpr int kFirst = kFirstShift<kSide>, kSecond = kSecondShift<kSide>;
  for (size_t lane = 0; lane < kQuadWords; lane += hn::Lanes(d), out += hn::Lanes(d) / 4 * kSide) {
    Wide columns[4][kSide];  // 0 and 2, 1 and 3, 4 and 6, 5 and 7 of each row
    for (size_t pair = 0; pair < (kSparse ? 2 : 4); ++pair) {
      ReducedPass<kSide, kFirst, kSparse>(ColumnsOf<kSparse>(d, words, quantiser, pair, lane),
                                          1 << (kFirst - 1), columns[pair]);
    }
    for (size_t i = 0; i < size_t{kSide}; i += 2) {
      // g++ for Arm cannot inline the vectors' constructors into a default constructor of Inputs.
      const Row zero = hn::Zero(d);
      PairInputs<Row> in = {zero, zero, zero, zero};
      if constexpr (kSparse) {
        in = {hn::ReorderDemote2To(d, columns[0][i], columns[0][i + 1]), zero,
              hn::ReorderDemote2To(d, columns[1][i], columns[1][i + 1]), zero};
      } else {
        const auto row = [&](size_t pair, size_t of) HWY_ATTR {
          return hn::ReorderDemote2To(d, columns[pair][of], columns[pair + 2][of]);
        };
        in = {Interleave(row(0, i), row(0, i + 1), false),
              Interleave(row(0, i), row(0, i + 1), true),
              Interleave(row(1, i), row(1, i + 1), false),
              Interleave(row(1, i), row(1, i + 1), true)};
      }
      Wide sample[kSide];
      ReducedPass<kSide, kSecond, kSparse>(in, (1 << (kSecond - 1)) + (128 << kSecond), sample);
      StoreReduced<kSide>(sample, out + static_cast<ptrdiff_t>(i) * stride, stride);
    }
  }
}

// Fills four blocks that have only a DC coefficient, or for side 1 only need that.
HWY_INLINE void FillReduced(const int16_t* dc, const Quantiser& quantiser, int side, uint8_t* out,
                            ptrdiff_t stride) {
  for (int b = 0; b < kGroupBlocks; ++b) {
    const auto dequantised = static_cast<int16_t>(dc[b] * quantiser.factor[0]);
    const uint8_t sample =
        side == 1 ? jpeg::MeanOfBlock(dequantised) : jpeg::FlatSample(dequantised);
    for (int y = 0; y < side; ++y) {
      std::memset(out + y * stride + b * side, sample, static_cast<size_t>(side));
    }
  }
}

// ---- Runs

void Unpack(const uint8_t* run, int from, int to, int16_t* words) {
  alignas(32) int16_t dc[kRunBlocks];
  const uint8_t* p = TakeDcs(run, dc);
  for (int g = 0; g < from; ++g) p = PassGroup(p);
  for (int g = from; g < to; ++g, words += kGroupWords) {
    const unsigned quads = std::min<unsigned>(*p++, kQuads);
    if (quads <= 4) std::memset(words, 0, kGroupWords * sizeof(int16_t));
    if (quads > 0) p = TakeQuads(p, quads, words);
    AddDcs(dc + kGroupBlocks * g, words);
  }
}

void Transform(const uint8_t* run, int from, int to, const Quantiser& quantiser, uint8_t* out,
               ptrdiff_t stride) {
  alignas(32) int16_t dc[kRunBlocks];
  Groups groups;
  const uint8_t* p = TakeDcs(run, dc);
  for (int g = 0; g < from; ++g) p = PassGroup(p);
  groups.dc = dc + kGroupBlocks * from;
  groups.count = to - from;
  for (int g = 0; g < groups.count; ++g) {
    const unsigned quads = groups.quads[g] = std::min<unsigned>(*p++, kQuads);
    if (quads == 0) continue;
    p = TakeQuads(p, quads, groups.words[g]);
    AddDcs(groups.dc + kGroupBlocks * g, groups.words[g]);
  }
  TransformGroups(groups, quantiser, out, stride);
}

template <int kSide>
HWY_INLINE void ReduceGroups(const uint8_t* p, const int16_t* dc, int from, int to,
                             const Quantiser& quantiser, uint8_t* out, ptrdiff_t stride) {
  alignas(64) int16_t words[kGroupWords];
  for (int g = 0; g < from; ++g) p = PassGroup(p);
  for (int g = from; g < to; ++g, out += kSide * kGroupBlocks) {
    const unsigned quads = std::min<unsigned>(*p++, kQuads);
    if (quads == 0) {
      FillReduced(dc + kGroupBlocks * g, quantiser, kSide, out, stride);
      continue;
    }
    p = TakeQuads(p, quads, words);
    AddDcs(dc + kGroupBlocks * g, words);
    if (quads <= 4) {
      ReduceGroup<kSide, true>(words, quantiser, out, stride);
    } else {
      ReduceGroup<kSide, false>(words, quantiser, out, stride);
    }
  }
}

void Reduce(const uint8_t* run, int from, int to, const Quantiser& quantiser, int side,
            uint8_t* out, ptrdiff_t stride) {
  alignas(32) int16_t dc[kRunBlocks];
  const uint8_t* const p = TakeDcs(run, dc);
  if (side == 4) return ReduceGroups<4>(p, dc, from, to, quantiser, out, stride);
  if (side == 2) return ReduceGroups<2>(p, dc, from, to, quantiser, out, stride);
  // The other coefficients have no part in it.
  for (int g = from; g < to; ++g, out += kGroupBlocks) {
    FillReduced(dc + kGroupBlocks * g, quantiser, 1, out, stride);
  }
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::packed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::packed {

HWY_EXPORT(Unpack);
HWY_EXPORT(Transform);
HWY_EXPORT(Reduce);

void SetQuantiser(const std::array<uint16_t, 64>& table, Quantiser& quantiser) {
  int16_t* to = quantiser.factor.data();
  for (int quad = 0; quad < kQuads; ++quad) {
    uint16_t of_block[4];
    for (int k = 0; k < 4; ++k) of_block[k] = table[static_cast<size_t>(CoefficientOf(quad, k))];
    for (int block = 0; block < kGroupBlocks; ++block, to += 4) {
      std::memcpy(to, of_block, sizeof(of_block));
    }
  }
}

void UnpackRun(const uint8_t* run, int from, int to, int16_t* words) {
  HWY_DYNAMIC_DISPATCH(Unpack)(run, from, to, words);
}

void TransformRun(const uint8_t* run, int from, int to, const Quantiser& quantiser, uint8_t* out,
                  ptrdiff_t stride) {
  HWY_DYNAMIC_DISPATCH(Transform)(run, from, to, quantiser, out, stride);
}

void ReduceRun(const uint8_t* run, int from, int to, const Quantiser& quantiser, int side,
               uint8_t* out, ptrdiff_t stride) {
  HWY_DYNAMIC_DISPATCH(Reduce)(run, from, to, quantiser, side, out, stride);
}

}  // namespace stoker::packed
#endif
