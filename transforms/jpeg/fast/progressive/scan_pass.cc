// Compiled once for each instruction set up to AVX2, as entropy.cc is.
#include "transforms/jpeg/fast/progressive/scan_pass.h"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/jpeg/fast/progressive/scan_pass.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/jpeg/fast/entropy/bit_reader-inl.h"

#ifndef STOKER_TRANSFORMS_JPEG_FAST_PROGRESSIVE_SCAN_PASS_CC
#define STOKER_TRANSFORMS_JPEG_FAST_PROGRESSIVE_SCAN_PASS_CC
namespace stoker::jpeg {
namespace {

// Coefficients `first` to `last`.
uint64_t Band(int first, int last) { return ~uint64_t{0} >> first & ~uint64_t{0} << (63 - last); }

// The offset from the first coefficient of a block of the one with a bit of a mask.
constexpr std::array<uint8_t, 64> MakePlaces() {
  std::array<uint8_t, 64> places{};
  for (size_t k = 0; k < 64; ++k) {
    places[63 - k] = static_cast<uint8_t>(kZigZag[k] / 8 * kGroupRow + kZigZag[k] % 8);
  }
  return places;
}
constexpr std::array<uint8_t, 64> kPlaceOfBit = MakePlaces();

// A coefficient whose bits from `low` up are known. Like libjpeg-turbo's, it keeps 16 bits of
// numbers that are too large: they may be 0.
int16_t Shifted(int32_t value, int low) {
  return static_cast<int16_t>(static_cast<uint32_t>(value) << low);
}

// Null outside the region.
int16_t* BlockAt(const BlockSpan& blocks, int index) {
  const int at = blocks.first + index;
  if (blocks.groups == nullptr || at < 0 || at >= blocks.kept) return nullptr;
  return blocks.groups + ptrdiff_t{at / kGroupBlocks} * kGroupStride + at % kGroupBlocks * 8;
}

// A block for the coefficients outside the region, which nobody reads.
struct Unused {
  int16_t block[8 * kGroupRow];
};

}  // namespace
}  // namespace stoker::jpeg
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {

// Passed by value, as in bit_reader-inl.h.
struct Taken {
  BitReader reader;
  ScanEntry entry;
};

// Takes a code that is not in the table with its value: at most 26 bits.
HWY_NOINLINE Taken TakeLong(BitReader r, ScanEntry e, const LongCodes& codes, bool& damaged) {
  int symbol = e.value;
  if (e.step == kLongValue) {
    Drop(r, e.bits);
  } else {
    symbol = TakeSymbol(r, codes);
    damaged |= symbol < 0;
    symbol = std::max(symbol, 0);
  }
  const int size = symbol & 15, run = symbol >> 4;
  if (size == 0 && run < 15) return {r, {0, 0, static_cast<uint8_t>(kRunOfBlocks + run)}};
  const auto value = static_cast<int16_t>(TakeValue(r, size));
  return {r, {value, 0, static_cast<uint8_t>(run + 1)}};
}

// Takes the bits of an EOBn code: returns how many blocks end, this one included.
HWY_INLINE uint32_t TakeEndRun(BitReader& r, int bits) {
  const auto more = static_cast<uint32_t>(r.window >> 1 >> (63 - bits));
  Drop(r, static_cast<unsigned>(bits));
  return (uint32_t{1} << bits) + more;
}

HWY_INLINE ScanEntry TakeEntry(BitReader& r, const ScanTable& table, bool& damaged) {
  const ScanEntry e = table.entry[r.window >> (64 - kScanWindow)];
  if (HWY_UNLIKELY(e.step >= kLongValue)) {
    const Taken taken = TakeLong({r.window, r.count, r.next}, e, table.codes, damaged);
    r = taken.reader;
    return taken.entry;
  }
  Drop(r, e.bits);
  return e;
}

int DecodeAcBlocks(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from, int to) {
  const ScanTable& table = *scan.table;
  BitReader r = state.reader;
  Unused unused;
  bool damaged = false;
  int i = from;
  while (i < to) {
    if (HWY_UNLIKELY(r.Beyond(state.stop))) break;
    if (scan.end_run != 0) {
      const auto ended = std::min(scan.end_run, static_cast<uint32_t>(to - i));
      scan.end_run -= ended;
      i += static_cast<int>(ended);
      continue;
    }
    int16_t* const kept = BlockAt(blocks, i);
    int16_t* const block = kept != nullptr ? kept : unused.block;
    uint64_t mask = 0;
    int k = scan.first - 1;
    do {
      Refill(r);
      const ScanEntry e = TakeEntry(r, table, damaged);
      if (e.step >= kRunOfBlocks) {
        scan.end_run = TakeEndRun(r, e.step - kRunOfBlocks) - 1;
        break;
      }
      k += e.step;
      if (HWY_UNLIKELY(k > scan.last)) {
        damaged = true;
        break;
      }
      const int bit = 63 - k;
      const int16_t c = Shifted(e.value, scan.low);
      block[kPlaceOfBit[static_cast<size_t>(bit)]] = c;
      mask |= uint64_t{c != 0} << bit;
    } while (k < scan.last);
    blocks.mask[i] |= mask;
    ++i;
    if (HWY_UNLIKELY(damaged)) break;
  }
  state.reader = r;
  state.damaged |= damaged;
  return i;
}

// The lowest bits of `bits`, each at one of the ones of `places`, from the lowest up.
HWY_INLINE uint64_t Spread(uint64_t bits, uint64_t places) {
#if HWY_TARGET <= HWY_AVX2
  return _pdep_u64(bits, places);
#else
  uint64_t spread = 0;
  for (; places != 0 && bits != 0; places &= places - 1, bits >>= 1) {
    if ((bits & 1) != 0) spread |= places & -places;
  }
  return spread;
#endif
}

// Reads a bit for each of the coefficients `set`, which are not zero: returns those that grow.
HWY_INLINE uint64_t TakeCorrections(BitReader& r, uint64_t set) {
  int count = std::popcount(set);
  if (count == 0) return 0;
  uint64_t high = 0;
  if (HWY_UNLIKELY(count > r.count)) {
    Refill(r);
    if (HWY_UNLIKELY(count > 56)) {
      high = r.window >> 32 << (count - 32);
      Drop(r, 32);
      count -= 32;
      Refill(r);
    }
  }
  const uint64_t bits = high | r.window >> (64 - count);
  Drop(r, static_cast<unsigned>(count));
  return Spread(bits, set);
}

// Lets coefficients grow by a unit.
HWY_INLINE void Grow(int16_t* block, uint64_t grow, int low) {
  for (; grow != 0; grow &= grow - 1) {
    int16_t& c = block[kPlaceOfBit[static_cast<size_t>(std::countr_zero(grow))]];
    c = static_cast<int16_t>(c + (((c >> 15) | 1) << low));
  }
}

struct Refined {
  uint64_t grow = 0;   // the coefficients that grow
  uint64_t added = 0;  // those that are no longer zero
};

// Refines a block that has codes. Stores the coefficients added.
HWY_INLINE Refined RefineBlock(BitReader& r, AcScan& scan, uint64_t set, int16_t* block,
                               bool& damaged) {
  Refined refined;
  uint64_t left = Band(scan.first, scan.last);  // the coefficients still to come
  while (left != 0) {
    Refill(r);
    const ScanEntry e = TakeEntry(r, *scan.table, damaged);
    if (e.step >= kRunOfBlocks) {
      scan.end_run = TakeEndRun(r, e.step - kRunOfBlocks) - 1;
      refined.grow |= TakeCorrections(r, set & left);
      break;
    }
    // The new coefficient follows after step - 1 zeros.
    const uint64_t zeros = left & ~set;
    const int after = std::popcount(zeros) - e.step;
    if (HWY_UNLIKELY(after < 0 || e.value < -1 || e.value > 1)) {
      damaged = true;
      break;
    }
    const uint64_t at = Spread(uint64_t{1} << after, zeros);
    refined.grow |= TakeCorrections(r, set & left & ~(at - 1));
    left &= at - 1;
    if (e.value == 0) continue;
    refined.added |= at;
    block[kPlaceOfBit[static_cast<size_t>(std::countr_zero(at))]] = Shifted(e.value, scan.low);
  }
  return refined;
}

int RefineAcBlocks(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from, int to) {
  const uint64_t band = Band(scan.first, scan.last);
  BitReader r = state.reader;
  Unused unused;
  bool damaged = false;
  int i = from;
  for (; i < to && !damaged && !r.Beyond(state.stop); ++i) {
    uint64_t& mask = blocks.mask[i];
    int16_t* const block = BlockAt(blocks, i);
    Refined refined;
    if (scan.end_run != 0) {
      --scan.end_run;
      Refill(r);
      refined.grow = TakeCorrections(r, mask & band);
    } else {
      refined = RefineBlock(r, scan, mask & band, block != nullptr ? block : unused.block, damaged);
    }
    mask |= refined.added;
    if (block != nullptr) Grow(block, refined.grow, scan.low);
  }
  state.reader = r;
  state.damaged |= damaged;
  return i;
}

int DecodeDcMcus(EntropyState& state, const DcScan& scan, int from, int to) {
  BitReader r = state.reader;
  int i = from;
  for (; i < to && !r.Beyond(state.stop); ++i) {
    for (int s = 0; s < scan.spans; ++s) {
      const McuSpan& span = scan.span[static_cast<size_t>(s)];
      int32_t& predictor = state.dc[static_cast<size_t>(span.predictor)];
      for (int column = 0; column < span.columns; ++column) {
        predictor += TakeDc(r, *span.dc, state.damaged);
        if (int16_t* const block = BlockAt(span.blocks, i * span.columns + column)) {
          *block = Shifted(predictor, scan.low);
        }
      }
    }
  }
  state.reader = r;
  return i;
}

int RefineDcMcus(EntropyState& state, const DcScan& scan, int from, int to) {
  BitReader r = state.reader;
  int i = from;
  for (; i < to && !r.Beyond(state.stop); ++i) {
    Refill(r);
    for (int s = 0; s < scan.spans; ++s) {
      const McuSpan& span = scan.span[static_cast<size_t>(s)];
      for (int column = 0; column < span.columns; ++column) {
        const int bit = static_cast<int>(r.window >> 63) << scan.low;
        Drop(r, 1);
        if (int16_t* const block = BlockAt(span.blocks, i * span.columns + column)) {
          *block = static_cast<int16_t>(*block | bit);
        }
      }
    }
  }
  state.reader = r;
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::jpeg {

HWY_EXPORT(DecodeAcBlocks);
HWY_EXPORT(RefineAcBlocks);
HWY_EXPORT(DecodeDcMcus);
HWY_EXPORT(RefineDcMcus);

int DecodeAc(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from, int to) {
  return HWY_DYNAMIC_DISPATCH(DecodeAcBlocks)(state, scan, blocks, from, to);
}
int RefineAc(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from, int to) {
  return HWY_DYNAMIC_DISPATCH(RefineAcBlocks)(state, scan, blocks, from, to);
}
int DecodeDc(EntropyState& state, const DcScan& scan, int from, int to) {
  return HWY_DYNAMIC_DISPATCH(DecodeDcMcus)(state, scan, from, to);
}
int RefineDc(EntropyState& state, const DcScan& scan, int from, int to) {
  return HWY_DYNAMIC_DISPATCH(RefineDcMcus)(state, scan, from, to);
}

namespace {

// The entry of windows that begin with the symbol's code, of `length` bits, and the bits after it.
ScanEntry EntryOf(int symbol, int length, int after) {
  const int size = symbol & 15, run = symbol >> 4;
  const auto code = static_cast<uint8_t>(length);
  if (size == 0 && run < 15) return {0, code, static_cast<uint8_t>(kRunOfBlocks + run)};
  const int left = kScanWindow - length;
  if (size > left) return {static_cast<int16_t>(symbol), code, kLongValue};
  const int bits = after >> (left - size);
  const int value = size == 0 ? 0 : bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits;
  return {static_cast<int16_t>(value), static_cast<uint8_t>(length + size),
          static_cast<uint8_t>(run + 1)};
}

}  // namespace

bool BuildScanTable(HuffmanSpec spec, ScanTable& table) {
  if (!FillLongCodes(spec, table.codes)) return false;
  const uint8_t* symbol = spec + 16;
  size_t at = 0;
  for (int length = 1; length <= 16; ++length) {
    for (int i = 0; i < spec[length - 1]; ++i, ++symbol) {
      const int size = *symbol & 15;
      if (size > kMaxAcSize) return false;
      if (length > kScanWindow) continue;
      const int count = 1 << (kScanWindow - length);
      for (int after = 0; after < count; ++after) {
        table.entry[at++] = EntryOf(*symbol, length, after);
      }
    }
  }
  std::fill(table.entry.begin() + static_cast<ptrdiff_t>(at), table.entry.end(),
            ScanEntry{0, 0, kLongScanCode});
  return true;
}

}  // namespace stoker::jpeg
#endif
