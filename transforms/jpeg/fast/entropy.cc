// Compiled once for each instruction set up to AVX2, with which BMI2's shifts come. There are no
// vectors here, and with AVX-512 g++ 12 keeps numbers in mask registers.
#include "transforms/jpeg/fast/entropy.h"

#include <cstring>

#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/jpeg/fast/entropy.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef STOKER_TRANSFORMS_JPEG_FAST_ENTROPY_CC
#define STOKER_TRANSFORMS_JPEG_FAST_ENTROPY_CC
namespace stoker::jpeg {
namespace {

// Where coefficient k of a block lies from the block's first one; beyond 63, in the room behind the
// group. The largest index is that of a k of 62, a run of 16 and the end of the block.
constexpr size_t kPlaces = 256;
static_assert(62 + 16 + kEndOfBlock < kPlaces);

struct Places {
  uint16_t at[kPlaces];
};

Places MakePlaces() {
  Places places{};
  for (size_t k = 0; k < kPlaces; ++k) {
    const unsigned natural = k < 64 ? kZigZag[k] : 64;
    places.at[k] = static_cast<uint16_t>(natural / 8 * kGroupRow + natural % 8);
  }
  return places;
}

const Places kPlace = MakePlaces();

}  // namespace
}  // namespace stoker::jpeg
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {

// At least 56 bits are there afterwards. Without a branch (Giesen, "Reading bits in far too many
// ways", variant 4): bits that are there already are read again.
HWY_INLINE void Refill(BitReader& r) {
  uint64_t bytes;
  std::memcpy(&bytes, r.next, sizeof(bytes));
  r.window |= __builtin_bswap64(bytes) >> r.count;
  r.next += (63 - r.count) >> 3;
  r.count |= 56;
}

HWY_INLINE void Drop(BitReader& r, unsigned bits) {
  r.window <<= bits & 63;
  r.count -= bits;
}

// ---- Codes longer than the windows: rare, and where damage shows.
//
// Readers are handed in and out as copies: one whose address is taken would live in memory, and
// each step of the fast loops would store it.

// T.81, F.2.2.1: a value with a leading zero bit is negative.
HWY_INLINE int TakeValue(BitReader& r, int size) {
  if (size == 0) return 0;
  const int bits = static_cast<int>(r.window >> (64 - size));
  Drop(r, static_cast<unsigned>(size));
  return bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits;
}

// -1 where there is no such code.
HWY_INLINE int TakeSymbol(BitReader& r, const LongCodes& codes) {
  const auto top = static_cast<int32_t>(r.window >> 48);
  for (size_t length = 1; length <= 16; ++length) {
    if (top >= codes.limit[length]) continue;
    Drop(r, static_cast<unsigned>(length));
    const int place = (top >> (16 - length)) + codes.offset[length];
    return codes.symbol[static_cast<size_t>(place)];
  }
  return -1;
}

struct Slow {
  BitReader reader;
  int value;  // of a DC coefficient; of an AC one, the new k: 64 or more at the end of the block
};

HWY_NOINLINE Slow SlowDc(BitReader r, const LongCodes& codes, bool& damaged) {
  const int size = TakeSymbol(r, codes);
  if (size < 0) {
    damaged = true;
    return {r, 0};
  }
  const int value = TakeValue(r, size);
  Refill(r);
  return {r, value};
}

// One AC symbol behind coefficient k. `block` may be null.
HWY_NOINLINE Slow SlowAc(BitReader r, const LongCodes& codes, int k, int16_t* block,
                         bool& damaged) {
  Refill(r);
  const int symbol = TakeSymbol(r, codes);
  if (symbol == 0) return {r, k + kEndOfBlock};
  const int next = k + (symbol >> 4) + 1;
  if (symbol < 0 || next > 63) {
    damaged = true;
    return {r, k + kEndOfBlock};
  }
  const int value = TakeValue(r, symbol & 15);
  if (block != nullptr) block[kPlace.at[next]] = static_cast<int16_t>(value);
  return {r, next};
}

// ---- One block

// Leaves at least 36 bits.
HWY_INLINE int TakeDc(BitReader& r, const DcTable& table, bool& damaged) {
  Refill(r);
  const DcEntry e = table.entry[r.window >> (64 - kDcWindow)];
  if (HWY_UNLIKELY(e.bits == 0)) {
    const Slow slow = SlowDc({r.window, r.count, r.next}, table.codes, damaged);
    r = slow.reader;
    return slow.value;
  }
  const uint64_t value = r.window << e.code_bits;
  Drop(r, e.bits);
  const auto bits = static_cast<int32_t>(value >> 1 >> (63 - e.size));
  const auto negative = static_cast<int32_t>(~(static_cast<int64_t>(value) >> 63));
  return bits + (negative & (1 - (1 << e.size)));
}

// Returns k of the last coefficient. Writes only inside the block's group.
HWY_INLINE unsigned DecodeBlock(BitReader& reader, const DcTable& dc, const AcTable& ac,
                                int16_t* HWY_RESTRICT block, int32_t& predictor, bool& damaged) {
  BitReader r = reader;
  predictor += TakeDc(r, dc, damaged);
  block[0] = static_cast<int16_t>(predictor);
  unsigned k = 0, next = 0;
  const AcEntry* e = nullptr;
  // One lookup: at most 20 bits. False, with the bits of `e` not yet taken, when something out of
  // the common case has come.
  const auto step = [&]() HWY_ATTR {
    e = &ac.entry[r.window >> (64 - kAcWindow)];
    next = k + e->step;
    const uint64_t behind = r.window >> (-unsigned{e->bits} & 63);  // ends with the last value
    const auto bits = static_cast<int32_t>(behind & ((uint64_t{1} << e->size) - 1));
    const int32_t bias = e->bias;
    block[kPlace.at[k + e->first_step]] = e->first_value;
    block[kPlace.at[next]] = static_cast<int16_t>(bits + (((2 * bits + bias) >> 31) & bias));
    if (HWY_UNLIKELY(next >= 63)) return false;
    k = next;
    Drop(r, e->bits);
    return true;
  };
  for (bool fresh = true;; fresh = false) {
    if (!fresh || step()) {
      do {
        Refill(r);
      } while (step() && step());
    }
    const bool ends = next - kEndOfBlock <= 62;
    if (HWY_LIKELY(ends || next == 63)) {
      Drop(r, e->bits);
      k = ends ? next - kEndOfBlock : 63;
      break;
    }
    // A code longer than the window, or two symbols of which the second is the next block's: the
    // same bits again, one symbol.
    const Slow slow =
        SlowAc({r.window, r.count, r.next}, ac.codes, static_cast<int>(k), block, damaged);
    r = slow.reader;
    if (slow.value > 63) break;
    k = static_cast<unsigned>(slow.value);
    if (k == 63) break;
  }
  reader = r;
  return k;
}

HWY_INLINE void SkipBlock(BitReader& reader, const DcTable& dc, const AcTable& ac,
                          const SkipTable& skip, int32_t& predictor, bool& damaged) {
  BitReader r = reader;
  predictor += TakeDc(r, dc, damaged);
  unsigned k = 0, next = 0;
  SkipEntry e{};
  // At most 22 bits. As in DecodeBlock.
  const auto step = [&]() HWY_ATTR {
    e = skip.entry[r.window >> (64 - kSkipWindow)];
    next = k + e.step;
    if (HWY_UNLIKELY(next >= 63)) return false;
    k = next;
    Drop(r, e.bits);
    return true;
  };
  for (bool fresh = true;; fresh = false) {
    if (!fresh || step()) {
      do {
        Refill(r);
      } while (step() && step());
    }
    if (HWY_LIKELY(next - kEndOfBlock <= 62 || next == 63)) {
      Drop(r, e.bits);
      break;
    }
    // As many as the entry may have held.
    for (int i = 0; i < kSkipWindow && k < 63; ++i) {
      const Slow slow =
          SlowAc({r.window, r.count, r.next}, ac.codes, static_cast<int>(k), nullptr, damaged);
      r = slow.reader;
      k = static_cast<unsigned>(slow.value);
    }
    if (k >= 63) break;
  }
  reader = r;
}

// ---- MCUs

int Decode(EntropyState& state, int column, int count) {
  BitReader r = state.reader;
  const int blocks = state.blocks;
  int done = 0;
  while (done < count) {
    for (int i = 0; i < blocks; ++i) {
      const McuBlock& b = state.block[static_cast<size_t>(i)];
      const int at = (column + done) * b.columns + b.column;
      int16_t* const block =
          b.groups + ptrdiff_t{at / kGroupBlocks} * kGroupStride + at % kGroupBlocks * 8;
      b.last[at] = static_cast<uint8_t>(DecodeBlock(
          r, *b.dc, *b.ac, block, state.dc[static_cast<size_t>(b.component)], state.damaged));
    }
    ++done;
    if (HWY_UNLIKELY(r.Beyond(state.stop))) break;
  }
  state.reader = r;
  return done;
}

int Skip(EntropyState& state, int count) {
  BitReader r = state.reader;
  const int blocks = state.blocks;
  int done = 0;
  while (done < count) {
    for (int i = 0; i < blocks; ++i) {
      const McuBlock& b = state.block[static_cast<size_t>(i)];
      SkipBlock(r, *b.dc, *b.ac, *b.skip, state.dc[static_cast<size_t>(b.component)],
                state.damaged);
    }
    ++done;
    if (HWY_UNLIKELY(r.Beyond(state.stop))) break;
  }
  state.reader = r;
  return done;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::jpeg {

HWY_EXPORT(Decode);
HWY_EXPORT(Skip);

int DecodeMcus(EntropyState& state, int column, int count) {
  return HWY_DYNAMIC_DISPATCH(Decode)(state, column, count);
}

int SkipMcus(EntropyState& state, int count) { return HWY_DYNAMIC_DISPATCH(Skip)(state, count); }

}  // namespace stoker::jpeg
#endif
