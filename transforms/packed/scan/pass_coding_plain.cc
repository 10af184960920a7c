#include <cstdlib>
#include <utility>

#include "transforms/packed/scan/pass_coding.h"
#include "transforms/packed/scan/pass_parts.h"

namespace stoker::packed {
namespace {

void CodeAc(const int16_t* block, const ScanCodes& codes, Pass& pass, BitSink& bits) {
  int zeros = 0;
  for (int k = pass.first; k <= pass.last; ++k) {
    const Number number = NumberOf(ValueAt(block, k, pass.low));
    if (number.size == 0) {
      ++zeros;
      continue;
    }
    EndRun(codes, pass, bits);
    for (; zeros > 15; zeros -= 16) PutSymbol(codes, kZeros16, bits);
    PutNumber(codes.ac[static_cast<size_t>(zeros << 4) | number.size], number, bits);
    zeros = 0;
  }
  if (zeros != 0) CountBlock(codes, {}, pass, bits);
}

// The last coefficient that is not zero for the first time; 0 if none is.
int LastAdded(const int16_t* block, const Pass& pass) {
  int last = 0;
  for (int k = pass.first; k <= pass.last; ++k) {
    if (std::abs(ValueAt(block, k, pass.low)) == 1) last = k;
  }
  return last;
}

void RefineAc(const int16_t* block, const ScanCodes& codes, Pass& pass, BitSink& bits) {
  const int last_added = LastAdded(block, pass);
  Corrections corrections;  // that follow the next code
  int zeros = 0;
  for (int k = pass.first; k <= pass.last; ++k) {
    const int value = ValueAt(block, k, pass.low);
    if (value == 0) {
      ++zeros;
      continue;
    }
    for (; zeros > 15 && k <= last_added; zeros -= 16) {
      EndRun(codes, pass, bits);
      PutSymbol(codes, kZeros16, bits);
      PutCorrections(std::exchange(corrections, {}), bits);
    }
    if (std::abs(value) > 1) {
      const auto bit = static_cast<uint64_t>(std::abs(value) & 1);
      corrections = {corrections.bits << 1 | bit, corrections.count + 1};
      continue;
    }
    EndRun(codes, pass, bits);
    PutNumber(codes.ac[static_cast<size_t>(std::exchange(zeros, 0) << 4) | 1], NumberOf(value),
              bits);
    PutCorrections(std::exchange(corrections, {}), bits);
  }
  if (last_added != pass.last) CountBlock(codes, corrections, pass, bits);
}

}  // namespace

void CodePassPlain(const BlockRows& rows, const McuWords& mcus, int from, int to,
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
          RefineAc(block, codes[component], pass, bits);
        } else {
          CodeAc(block, codes[component], pass, bits);
        }
      }
    }
  }
}

}  // namespace stoker::packed
