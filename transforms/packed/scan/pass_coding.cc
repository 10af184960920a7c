#include "transforms/packed/scan/pass_coding.h"

#include <bit>
#include <cstdlib>
#include <utility>

namespace stoker::packed {
namespace {

void PutSymbol(const ScanCodes& codes, size_t symbol, BitSink& bits) {
  bits.Put(codes.ac[symbol] >> 8, codes.ac[symbol] & 0xFF);
}

void PutNumber(uint64_t code, Number number, BitSink& bits) {
  bits.Put(code >> 8 | number.bits, code & 0xFF);
}

void PutCorrections(Corrections corrections, BitSink& bits) {
  constexpr unsigned kHalf = 32;
  if (corrections.count > kHalf) {
    corrections.count -= kHalf;
    bits.Put(corrections.bits >> kHalf, corrections.count);
    corrections = {corrections.bits & 0xFFFF'FFFF, kHalf};
  }
  bits.Put(corrections.bits, corrections.count);
}

constexpr uint64_t Bit(int k) { return uint64_t{1} << k; }

// The coefficients `first` to `last`, as bits of non_zero.
uint64_t BandOf(const Pass& pass) {
  return ~uint64_t{0} >> (63 - pass.last) & ~uint64_t{0} << pass.first;
}

// A block's coefficient without its `low` lowest bits.
int ValueAt(const int16_t* block, int k, int low) {
  const int value = block[kWordOfZigZag[static_cast<size_t>(k)]];
  return value < 0 ? -(-value >> low) : value >> low;
}

// Counts a block without further coefficients.
void CountBlock(const ScanCodes& codes, const Corrections& corrections, Pass& pass, BitSink& bits) {
  if (pass.jpegli_runs && pass.correction_bits + corrections.count > Pass::kJpegliCorrections) {
    EndRun(codes, pass, bits);
  }
  ++pass.end_run;
  if (corrections.count != 0) pass.corrections.push_back(corrections);
  pass.correction_bits += corrections.count;
  if (pass.end_run == Pass::kMostBlocks || pass.correction_bits > Pass::kMostCorrections) {
    EndRun(codes, pass, bits);
  }
}

void CodeAc(const int16_t* block, uint64_t non_zero, const ScanCodes& codes, Pass& pass,
            BitSink& bits) {
  int previous = pass.first - 1;
  for (uint64_t left = non_zero & BandOf(pass); left != 0; left &= left - 1) {
    const int k = std::countr_zero(left);
    const Number number = NumberOf(ValueAt(block, k, pass.low));
    if (number.size == 0) continue;
    EndRun(codes, pass, bits);
    int zeros = k - previous - 1;
    for (; zeros > 15; zeros -= 16) PutSymbol(codes, kZeros16, bits);
    PutNumber(codes.ac[static_cast<size_t>(zeros << 4) | number.size], number, bits);
    previous = k;
  }
  if (previous < pass.last) CountBlock(codes, {}, pass, bits);
}

void RefineAc(const int16_t* block, uint64_t non_zero, const ScanCodes& codes, Pass& pass,
              BitSink& bits) {
  // The coefficients that are not zero so far or become so in this scan, those that become so, and
  // those whose next bit is set.
  uint64_t set = 0, added = 0, odd = 0;
  for (uint64_t left = non_zero & BandOf(pass); left != 0; left &= left - 1) {
    const int k = std::countr_zero(left), size = std::abs(ValueAt(block, k, pass.low));
    if (size != 0) set |= Bit(k);
    if (size == 1) added |= Bit(k);
    if ((size & 1) != 0) odd |= Bit(k);
  }
  Corrections corrections;  // that follow the next code
  int zeros = 0, previous = pass.first - 1;
  for (uint64_t left = set; left != 0; left &= left - 1) {
    const int k = std::countr_zero(left);
    zeros += k - std::exchange(previous, k) - 1;
    for (; zeros > 15 && (added >> k) != 0; zeros -= 16) {
      EndRun(codes, pass, bits);
      PutSymbol(codes, kZeros16, bits);
      PutCorrections(std::exchange(corrections, {}), bits);
    }
    if ((added & Bit(k)) == 0) {
      corrections = {corrections.bits << 1 | (odd >> k & 1), corrections.count + 1};
      continue;
    }
    EndRun(codes, pass, bits);
    const Number number = NumberOf(ValueAt(block, k, pass.low));
    PutNumber(codes.ac[static_cast<size_t>(std::exchange(zeros, 0) << 4) | 1], number, bits);
    PutCorrections(std::exchange(corrections, {}), bits);
  }
  if ((added & Bit(pass.last)) == 0) CountBlock(codes, corrections, pass, bits);
}

void CodeDc(int dc, const ScanCodes& codes, const Pass& pass, int& predictor, BitSink& bits) {
  if (pass.refines) return bits.Put(dc >> pass.low & 1, 1);
  const int value = dc >> pass.low;
  const Number number = NumberOf(value - std::exchange(predictor, value));
  PutNumber(codes.dc[number.size], number, bits);
}

}  // namespace

void EndRun(const ScanCodes& codes, Pass& pass, BitSink& bits) {
  if (pass.end_run == 0) return;
  const int more = std::bit_width(pass.end_run) - 1;
  PutSymbol(codes, static_cast<size_t>(more << 4), bits);
  bits.Put(pass.end_run - (uint32_t{1} << more), static_cast<unsigned>(more));
  for (const Corrections& corrections : pass.corrections) PutCorrections(corrections, bits);
  pass.corrections.clear();
  pass.end_run = pass.correction_bits = 0;
}

void CodePass(const BlockRows& rows, const McuWords& mcus, int from, int to,
              std::span<const ScanCodes, 3> codes, Pass& pass, BitSink& bits) {
  for (int mcu = from; mcu < to; ++mcu) {
    for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
      const BlockRow& row = rows.row[r];
      const auto component = static_cast<size_t>(row.component);
      for (int i = mcu * row.columns; i < (mcu + 1) * row.columns; ++i) {
        const int16_t* const block =
            mcus.words[r] + i / kGroupBlocks * kGroupWords + i % kGroupBlocks * 4;
        if (pass.last == 0) {
          CodeDc(block[0], codes[component], pass, pass.predictor[component], bits);
        } else if (pass.refines) {
          RefineAc(block, mcus.non_zero[r][i], codes[component], pass, bits);
        } else {
          CodeAc(block, mcus.non_zero[r][i], codes[component], pass, bits);
        }
      }
    }
  }
}

}  // namespace stoker::packed
