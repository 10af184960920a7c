// ScanWriter: codes coefficients as the entropy-coded data of a baseline JPEG, as libjpeg and most
// encoders do: every run of zeros in the fewest codes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/packed/format.h"
#include "transforms/packed/scan/scan_coding.h"

namespace stoker::packed {

// Reused from file to file. Not thread-safe.
class ScanWriter {
 public:
  // Begins a scan with the Huffman tables and the restart interval of `header`, which must stay
  // valid. Its bytes are appended to `out`.
  void Start(const jpeg::FrameHeader& header, bool pads_with_zeros, std::vector<uint8_t>& out);

  // Writes a row of MCUs. `words` has, for each row of blocks, its groups as UnpackRun writes them.
  // Symbols without a code are written as unspecified bits.
  void WriteRow(const BlockRows& rows, std::span<const int16_t* const> words);

  // Fills the last byte.
  void Finish();

 private:
  void Reserve(const BlockRows& rows);
  void EndSegment();
  void Flush();

  const jpeg::FrameHeader* header_ = nullptr;
  bool pads_with_zeros_ = false;
  std::array<ScanCodes, 3> codes_;  // by component
  std::array<int, 3> predictor_{};
  int64_t mcu_ = 0;  // the next one

  std::vector<uint64_t> non_zero_;  // of a row of MCUs
  std::vector<uint8_t> clean_;      // bytes after which zeros are still to be stuffed
  BitSink bits_;                    // to clean_
  std::vector<uint8_t>* out_ = nullptr;
};

}  // namespace stoker::packed
