// Codes coefficients as entropy-coded data of one scan of a progressive JPEG (ITU-T T.81, G.1.2),
// some blocks at a time.
//
// The data depend on the encoder in one respect: how many blocks without further coefficients it
// counts before it writes their number, with the bits that correct coefficients of theirs. Two
// rules are known: libjpeg's (jcphuff.c), which nearly all encoders have, and jpegli's
// (entropy_coding.cc).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transforms/packed/format.h"
#include "transforms/packed/scan/scan_coding.h"

namespace stoker::packed {

// Bits that correct coefficients: the oldest are the highest.
struct Corrections {
  uint64_t bits = 0;
  unsigned count = 0;
};

// The part of a scan that has been coded.
struct Pass {
  // libjpeg's buffer has 1000 correction bits, and must always have room for those of a block.
  static constexpr unsigned kMostCorrections = 1000 - 64 + 1;
  // A run of jpegli ends before it would have more.
  static constexpr unsigned kJpegliCorrections = 255;
  static constexpr uint32_t kMostBlocks = 0x7FFF;

  int first = 0, last = 0, low = 0;  // as of jpeg::Scan
  bool refines = false;
  bool jpegli_runs = false;
  std::array<int, 3> predictor{};  // each component's last DC coefficient

  // The blocks without further coefficients that are not yet written, the bits that correct
  // coefficients of theirs, and the number of these bits.
  uint32_t end_run = 0;
  std::vector<Corrections> corrections;
  unsigned correction_bits = 0;
};

// Codes MCUs [from, to). `rows`: those of the scan's components; if it has one component, an MCU is
// a block. `mcus`: with the masks of FindBits, of more levels than pass.low. The codes that symbols
// must have, and the room for any words and codes, are those of CodeMcus (scan_coding.h).
void CodePass(const BlockRows& rows, const McuWords& mcus, int from, int to,
              std::span<const ScanCodes, 3> codes, Pass& pass, BitSink& bits);
void CodePassPlain(const BlockRows& rows, const McuWords& mcus, int from, int to,
                   std::span<const ScanCodes, 3> codes, Pass& pass,
                   BitSink& bits);  // the reference, which does not need the masks

// Writes the blocks without further coefficients, before the end of a segment: at most kMcuRoom
// bytes.
void EndRun(const ScanCodes& codes, Pass& pass, BitSink& bits);

}  // namespace stoker::packed
