// Compiled once for each instruction set up to AVX2, as scan_coding.cc is.
#include "transforms/packed/scan/pass_coding.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/packed/scan/pass_coding.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/packed/scan/pass_parts.h"

#ifndef STOKER_TRANSFORMS_PACKED_PASS_CODING_CC
#define STOKER_TRANSFORMS_PACKED_PASS_CODING_CC
namespace stoker::packed {
namespace {

constexpr uint64_t Bit(int k) { return uint64_t{1} << k; }

// The order of bits reversed.
constexpr uint64_t Reversed(uint64_t bits) {
  bits = (bits >> 1 & 0x5555'5555'5555'5555) | (bits & 0x5555'5555'5555'5555) << 1;
  bits = (bits >> 2 & 0x3333'3333'3333'3333) | (bits & 0x3333'3333'3333'3333) << 2;
  bits = (bits >> 4 & 0x0F0F'0F0F'0F0F'0F0F) | (bits & 0x0F0F'0F0F'0F0F'0F0F) << 4;
  return __builtin_bswap64(bits);
}

// A block's coefficients that a scan codes, as bits, from FindBits's masks.
struct Coefficients {
  Coefficients(const uint64_t* masks, int levels, const Pass& pass)
      : odd(masks[pass.low]), negative(masks[levels + 1]) {
    uint64_t larger = 0;
    for (int level = pass.low + 1; level <= levels; ++level) larger |= masks[level];
    const uint64_t band = ~uint64_t{0} >> (63 - pass.last) & ~uint64_t{0} << pass.first;
    set = (odd | larger) & band;
    added = set & ~larger;
  }

  uint64_t odd, negative;
  uint64_t set;    // not zero without the lowest bits
  uint64_t added;  // 1 or -1 without them
};

}  // namespace
}  // namespace stoker::packed
#endif  // STOKER_TRANSFORMS_PACKED_PASS_CODING_CC

HWY_BEFORE_NAMESPACE();
namespace stoker::packed {
namespace HWY_NAMESPACE {

// The bits at the ones of `places`, the lowest first.
HWY_INLINE Corrections CorrectionsAt(uint64_t places, uint64_t bits) {
  const auto count = static_cast<unsigned>(std::popcount(places));
  if (count == 0) return {};
#if HWY_TARGET <= HWY_AVX2
  const uint64_t found = _pext_u64(bits, places);
#else
  uint64_t found = 0;
  for (uint64_t to = 1; places != 0; places &= places - 1, to <<= 1) {
    if ((bits & places & -places) != 0) found |= to;
  }
#endif
  return {Reversed(found) >> (64 - count), count};
}

HWY_INLINE void CodeAc(const int16_t* block, const Coefficients& c, const ScanCodes& codes,
                       Pass& pass, BitSink& sink) {
  if (c.set != 0) EndRun(codes, pass, sink);
  BitSink bits = sink;  // a copy stays in registers
  int previous = pass.first - 1;
  for (uint64_t left = c.set; left != 0; left &= left - 1) {
    const int k = std::countr_zero(left);
    int zeros = k - previous - 1;
    for (; zeros > 15; zeros -= 16) PutSymbol(codes, kZeros16, bits);
    const Number number = NumberOf(ValueAt(block, k, pass.low));
    PutNumber(codes.ac[static_cast<size_t>(zeros << 4) | number.size], number, bits);
    previous = k;
  }
  sink = bits;
  if (previous < pass.last) CountBlock(codes, {}, pass, sink);
}

// Codes the zeros before coefficient k in sixteens, each before a coefficient that is not zero.
// `before`: the coefficients from the last code to k. Removes those to correct whose bits are
// written. Returns how many zeros are left.
HWY_NOINLINE int CodeSixteens(const Coefficients& c, int k, uint64_t before, uint64_t& corrected,
                              const ScanCodes& codes, BitSink& bits) {
  int coded = 0, zeros = 0;
  for (uint64_t left = c.set & (before | Bit(k)); left != 0; left &= left - 1) {
    const uint64_t until = before & ((left & -left) - 1);
    zeros = std::popcount(until & ~c.set) - coded;
    for (; zeros > 15; zeros -= 16, coded += 16) {
      PutSymbol(codes, kZeros16, bits);
      PutCorrections(CorrectionsAt(corrected & until, c.odd), bits);
      corrected &= ~until;
    }
  }
  return zeros;
}

HWY_INLINE void RefineAc(const Coefficients& c, const ScanCodes& codes, Pass& pass, BitSink& sink) {
  if (c.added != 0) EndRun(codes, pass, sink);
  uint64_t after = ~uint64_t{0} << pass.first;  // the last code
  for (uint64_t left = c.added; left != 0; left &= left - 1) {
    const int k = std::countr_zero(left);
    const uint64_t before = after & (Bit(k) - 1);
    uint64_t corrected = c.set & before;
    int zeros = std::popcount(before & ~c.set);
    if (HWY_UNLIKELY(zeros > 15)) zeros = CodeSixteens(c, k, before, corrected, codes, sink);
    const auto positive = static_cast<uint16_t>(~c.negative >> k & 1);
    PutNumber(codes.ac[static_cast<size_t>(zeros << 4) | 1], {positive, 1}, sink);
    PutCorrections(CorrectionsAt(corrected, c.odd), sink);
    after = ~uint64_t{0} << k << 1;
  }
  if ((c.added & Bit(pass.last)) != 0) return;
  CountBlock(codes, CorrectionsAt(c.set & after, c.odd), pass, sink);
}

void Code(const BlockRows& rows, const McuWords& mcus, int from, int to,
          std::span<const ScanCodes, 3> codes, Pass& pass, BitSink& bits) {
  for (int mcu = from; mcu < to; ++mcu) {
    for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
      const BlockRow& row = rows.row[r];
      const auto component = static_cast<size_t>(row.component);
      for (int i = mcu * row.columns; i < (mcu + 1) * row.columns; ++i) {
        const int16_t* const block =
            mcus.words[r] + i / kGroupBlocks * kGroupWords + i % kGroupBlocks * 4;
        const ScanCodes& its = codes[component];
        if (pass.last == 0) {
          CodeDc(block[0], its, pass, pass.predictor[component], bits);
          continue;
        }
        const uint64_t* const masks = mcus.masks[r] + ptrdiff_t{i} * MasksOf(mcus.levels);
        const Coefficients c(masks, mcus.levels, pass);
        if (pass.refines) {
          RefineAc(c, its, pass, bits);
        } else {
          CodeAc(block, c, its, pass, bits);
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker::packed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::packed {

HWY_EXPORT(Code);

void CodePass(const BlockRows& rows, const McuWords& mcus, int from, int to,
              std::span<const ScanCodes, 3> codes, Pass& pass, BitSink& bits) {
  HWY_DYNAMIC_DISPATCH(Code)(rows, mcus, from, to, codes, pass, bits);
}

void EndRun(const ScanCodes& codes, Pass& pass, BitSink& bits) {
  if (pass.end_run == 0) return;
  const int more = std::bit_width(pass.end_run) - 1;
  PutSymbol(codes, static_cast<size_t>(more << 4), bits);
  bits.Put(pass.end_run - (uint32_t{1} << more), static_cast<unsigned>(more));
  for (const Corrections& corrections : pass.corrections) PutCorrections(corrections, bits);
  pass.corrections.clear();
  pass.end_run = pass.correction_bits = 0;
}

}  // namespace stoker::packed
#endif
