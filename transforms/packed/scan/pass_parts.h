// The parts of a scan's data, which CodePass and its reference share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "transforms/packed/scan/pass_coding.h"

namespace stoker::packed {

inline void PutSymbol(const ScanCodes& codes, size_t symbol, BitSink& bits) {
  bits.Put(codes.ac[symbol] >> 8, codes.ac[symbol] & 0xFF);
}

inline void PutNumber(uint64_t code, Number number, BitSink& bits) {
  bits.Put(code >> 8 | number.bits, code & 0xFF);
}

inline void PutCorrections(Corrections corrections, BitSink& bits) {
  constexpr unsigned kHalf = 32;
  if (corrections.count > kHalf) {
    corrections.count -= kHalf;
    bits.Put(corrections.bits >> kHalf, corrections.count);
    corrections = {corrections.bits & 0xFFFF'FFFF, kHalf};
  }
  bits.Put(corrections.bits, corrections.count);
}

// A block's coefficient without its `low` lowest bits.
inline int ValueAt(const int16_t* block, int k, int low) {
  const int value = block[kWordOfZigZag[static_cast<size_t>(k)]];
  return value < 0 ? -(-value >> low) : value >> low;
}

// Counts a block without further coefficients.
inline void CountBlock(const ScanCodes& codes, const Corrections& corrections, Pass& pass,
                       BitSink& bits) {
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

inline void CodeDc(int dc, const ScanCodes& codes, const Pass& pass, int& predictor,
                   BitSink& bits) {
  const int value = dc >> pass.low;
  if (pass.refines) return bits.Put(value & 1, 1);
  const Number number = NumberOf(value - std::exchange(predictor, value));
  PutNumber(codes.dc[number.size], number, bits);
}

}  // namespace stoker::packed
