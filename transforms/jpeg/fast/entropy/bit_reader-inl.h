// Reads bits, codes and DC coefficients. Compiled once for each instruction set, inside the file
// that includes it (after hwy/highway.h).
#if defined(STOKER_BIT_READER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_BIT_READER_INL_H
#undef STOKER_BIT_READER_INL_H
#else
#define STOKER_BIT_READER_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/entropy/huffman.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::jpeg {
namespace HWY_NAMESPACE {

// Afterwards at least 56 bits are valid. Branchless (Giesen, "Reading bits in far too many ways",
// variant 4): bits that are valid already are read again.
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

// The bits of `window` that have place & 255 bits after them; as many as place / 256.
HWY_INLINE int BitsAt(uint64_t window, uint16_t place) {
#if HWY_TARGET <= HWY_AVX2
  return static_cast<int>(__bextr_u64(window, place));
#else
  return static_cast<int>(window >> (place & 63) & ((uint64_t{1} << (place >> 8)) - 1));
#endif
}

// ---- Codes longer than the windows, which are rare, and damaged codes
//
// Readers are passed by value: a reader whose address is taken would live in memory, and each step
// of the fast loops would store it.

// T.81, F.2.2.1: a value with a leading zero bit is negative. `bias`: 1 - (1 << size).
HWY_INLINE int Extend(int bits, int bias) { return bits + (((2 * bits + bias) >> 31) & bias); }

HWY_INLINE int TakeValue(BitReader& r, int size) {
  const int bits = static_cast<int>(r.window >> 1 >> (63 - size));
  Drop(r, static_cast<unsigned>(size));
  return Extend(bits, 1 - (1 << size));
}

// Returns -1 if there is no such code.
HWY_INLINE int TakeSymbol(BitReader& r, const LongCodes& codes) {
  const auto top = static_cast<int32_t>(r.window >> 48);
  for (size_t length = 1; length <= 16; ++length) {
    if (top >= codes.limit[length]) continue;
    Drop(r, static_cast<unsigned>(length));
    const int index = (top >> (16 - length)) + codes.offset[length];
    return codes.symbol[static_cast<size_t>(index)];
  }
  return -1;
}

struct Slow {
  BitReader reader;
  int value;  // the value of a DC coefficient; for an AC coefficient the new k, 64 or more at the
              // end of the block
};

HWY_NOINLINE inline Slow SlowDc(BitReader r, const LongCodes& codes, bool& damaged) {
  const int size = TakeSymbol(r, codes);
  if (size < 0) {
    damaged = true;
    return {r, 0};
  }
  const int value = TakeValue(r, size);
  Refill(r);
  return {r, value};
}

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

}  // namespace HWY_NAMESPACE
}  // namespace stoker::jpeg
HWY_AFTER_NAMESPACE();

#endif  // STOKER_BIT_READER_INL_H
